//! Flag bits of a PDU.

/// DATA: first packet of a message. ACK: the echo fields are valid.
pub const FIRST: u8 = 1 << 0;
/// ACK: the echo fields are valid.
pub const ECHO: u8 = 1 << 0;
/// ACK: failed members come in sets.
pub const SETS: u8 = 1 << 1;
/// DATA: last packet of a message.
pub const LAST: u8 = 1 << 1;
/// DATA, NACK, REPAIR: the edge has buffer class 2.
pub const CLASS2: u8 = 1 << 2;
/// STATUS from a member to the origin: the application there takes the message slower than it comes.
pub const SLOW: u8 = 1 << 2;
/// DATA, STATUS: the receiver answers at once.
pub const ACK_NOW: u8 = 1 << 3;
/// DATA with LAST: the message is void.
pub const CANCEL: u8 = 1 << 4;
/// The PDU ends in padding; its last byte says how many bytes of it.
pub const PADDED: u8 = 1 << 5;
/// DATA: the choice field is present; without it the choice is 0.
pub const DATA_CHOICE: u8 = 1 << 6;
/// STATUS: the choice field is present; without it the choice is 0.
pub const STATUS_CHOICE: u8 = 1 << 4;
/// STATUS from a member to the origin: no application there takes the message.
pub const UNCLAIMED: u8 = 1 << 6;
/// STATUS from a member to the sequencer of an ordered group: the place of a message is asked for.
pub const ORDER_WANTED: u8 = 1 << 0;
/// STATUS with ORDER_WANTED, from the sequencer to a member that asked: the message is next.
pub const ORDER_NEXT: u8 = 1 << 1;
/// The origin field is present; without it the origin is the worm's source.
pub const ORIGIN: u8 = 1 << 7;
