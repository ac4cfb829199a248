//! The list of a bundle with hashes, which goes before it: receivers answer what of it they lack, and only that comes.
//!
//! What is asked of receivers is a hint. One that says nothing lacks everything; what is put together of what comes and
//! of what was there is checked by the SHA-256 of each file.

use crate::list::{
    BLOCK_BYTES_MIN, BLOCKED_FROM_BYTES, BLOCKS_MAX, Content, Entry, Kind, List, Run, SHA256_BYTES,
    SPARSE_BYTES_MAX,
};
use crate::pack::{PIECE_BYTES, PackError, Packed, encode};
use prost::Message;
use prost::encoding::{decode_varint, encode_varint};
use sha2::{Digest, Sha256};

/// Bytes of an answer. One that would be longer says of more that it is lacking.
pub const ANSWER_BYTES_MAX: usize = 48 << 10;

/// What is asked for in one: a block, or a file that has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    /// Of its file in the list.
    pub place: usize,
    /// Where it is in its file.
    pub start: u64,
    pub bytes: u64,
}

/// Which list an answer is about: the same for the offered list and for those that say what of it comes.
pub fn identity(list: &List) -> [u8; SHA256_BYTES] {
    let mut hash = Sha256::new();
    for entry in &list.entries {
        let mut entry = entry.clone();
        if let Some(Kind::File(content)) = &mut entry.kind {
            (content.blocks, content.sent) = (Vec::new(), Vec::new());
            content.partial = false;
        }
        hash.update(entry.encode_length_delimited_to_vec());
    }
    hash.finalize().into()
}

/// What of an offered list is asked for in one.
///
/// # Errors
/// What is wrong with its hashes.
pub fn units(list: &List) -> Result<Vec<Unit>, String> {
    let block_bytes = list.block_bytes;
    if block_bytes < BLOCK_BYTES_MIN || !block_bytes.is_power_of_two() {
        return Err(format!(
            "blocks of {block_bytes} bytes; possible: powers of two from {BLOCK_BYTES_MIN} on"
        ));
    }
    let mut units = Vec::new();
    let (mut more_blocks, mut sparse_bytes) = (0, 0_u64);
    for (place, entry) in list.entries.iter().enumerate() {
        let Some(content) = entry.content() else {
            continue;
        };
        let bytes = content.bytes;
        let (wanted, unit_bytes) = if bytes < BLOCKED_FROM_BYTES {
            (0, bytes)
        } else {
            (bytes.div_ceil(block_bytes), block_bytes)
        };
        if content.sparse {
            sparse_bytes = sparse_bytes.saturating_add(bytes);
        }
        check_sparse(sparse_bytes)?;
        more_blocks += wanted.saturating_sub(1);
        let hashes = content.blocks.len() as u64;
        if content.partial
            || content.sha256.len() != SHA256_BYTES
            || more_blocks > BLOCKS_MAX
            || wanted * SHA256_BYTES as u64 != hashes
        {
            let number = place + 1;
            return Err(format!("entry {number} has not the hashes that it needs"));
        }
        units.extend((0..wanted.max(1)).map(|block| {
            let start = block * unit_bytes;
            let bytes = unit_bytes.min(bytes - start);
            Unit {
                place,
                start,
                bytes,
            }
        }));
    }
    Ok(units)
}

pub(crate) fn check_sparse(bytes: u64) -> Result<(), String> {
    if bytes > SPARSE_BYTES_MAX {
        return Err(format!(
            "sparse files of {bytes} bytes; at most {SPARSE_BYTES_MAX} are compared"
        ));
    }
    Ok(())
}

/// What is lacking, as an answer: which list, then how many units are there, how many are not, how many are there …
pub fn encode_answer(identity: &[u8; SHA256_BYTES], lacking: &[bool]) -> Vec<u8> {
    let mut shortest = 1;
    loop {
        let mut answer = identity.to_vec();
        for run in answer_runs(lacking, shortest) {
            encode_varint(run, &mut answer);
        }
        if answer.len() <= ANSWER_BYTES_MAX {
            return answer;
        }
        shortest *= 2;
    }
}

/// Units that are there and not, in turn; fewer than `shortest` that are there count as lacking.
fn answer_runs(lacking: &[bool], shortest: usize) -> Vec<u64> {
    let mut runs = vec![0_u64];
    for chunk in lacking.chunk_by(|one, other| one == other) {
        let lacks = chunk[0] || chunk.len() < shortest;
        // Every other run is of what is there, the first of them.
        let last_lacks = runs.len() % 2 == 0;
        match runs.last_mut() {
            Some(last) if lacks == last_lacks => *last += chunk.len() as u64,
            _ => runs.push(chunk.len() as u64),
        }
    }
    runs
}

/// What an answer says is lacking of so many units; `None` if it is about another list, or is none.
pub fn decode_answer(
    answer: &[u8],
    identity: &[u8; SHA256_BYTES],
    units: usize,
) -> Option<Vec<bool>> {
    if answer.len() > ANSWER_BYTES_MAX {
        return None;
    }
    let mut rest = answer.strip_prefix(identity)?;
    let mut lacking = Vec::with_capacity(units);
    let mut lacks = false;
    while !rest.is_empty() {
        let run = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
        if run > units - lacking.len() {
            return None;
        }
        lacking.resize(lacking.len() + run, lacks);
        lacks = !lacks;
    }
    (lacking.len() == units).then_some(lacking)
}

/// A bundle that is offered.
#[derive(Debug)]
pub struct Offer {
    packed: Packed,
    units: Vec<Unit>,
    identity: [u8; SHA256_BYTES],
    encoded: Vec<u8>,
    /// Of each unit, whether somebody lacks it.
    lacking: Vec<bool>,
}

impl Offer {
    /// Reads all files once.
    ///
    /// # Errors
    /// [`PackError`].
    pub fn new(packed: &Packed) -> Result<Self, PackError> {
        let mut list = packed.list().clone();
        let sparse = list.entries.iter().filter_map(Entry::content);
        let sparse = sparse.filter(|content| content.sparse).map(|it| it.bytes);
        check_sparse(sparse.fold(0, u64::saturating_add)).map_err(PackError::Refused)?;
        let block_bytes = block_bytes(&list);
        let mut piece = vec![0; PIECE_BYTES];
        for (place, entry) in list.entries.iter_mut().enumerate() {
            let of = &packed.list().entries[place];
            if let (Some(Kind::File(content)), Some(as_found)) = (&mut entry.kind, of.content()) {
                hash(
                    packed,
                    place,
                    of,
                    as_found,
                    block_bytes,
                    &mut piece,
                    content,
                )?;
            }
        }
        let packed = packed.clone().with_list(list.clone())?;
        list.block_bytes = block_bytes;
        let units = units(&list).map_err(PackError::Refused)?;
        Ok(Self {
            identity: identity(&list),
            encoded: encode(&list)?,
            lacking: vec![false; units.len()],
            units,
            packed,
        })
    }

    /// The list as it goes to receivers.
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// How many entries the list has.
    pub fn entries(&self) -> usize {
        self.packed.list().entries.len()
    }

    /// Nobody is known to lack anything.
    pub fn begin(&mut self) {
        self.lacking.fill(false);
    }

    /// Somebody lacks everything.
    pub fn note_all(&mut self) {
        self.lacking.fill(true);
    }

    /// What a receiver answers. False: it is no answer to this, and says nothing.
    pub fn note(&mut self, answer: &[u8]) -> bool {
        let Some(lacking) = decode_answer(answer, &self.identity, self.units.len()) else {
            return false;
        };
        let all = self.lacking.iter_mut().zip(lacking);
        all.for_each(|(one, lacks)| *one |= lacks);
        true
    }

    /// The bundle with what somebody lacks.
    ///
    /// # Errors
    /// [`PackError`].
    pub fn bundle(&self) -> Result<Packed, PackError> {
        let mut list = self.packed.list().clone();
        let mut units = self.units.iter().zip(&self.lacking).peekable();
        for (place, entry) in list.entries.iter_mut().enumerate() {
            let Some(Kind::File(content)) = &mut entry.kind else {
                continue;
            };
            content.blocks = Vec::new();
            let mut wanted: Vec<Run> = Vec::new();
            content.partial = false;
            while let Some((unit, lacks)) = units.next_if(|(unit, _)| unit.place == place) {
                content.partial |= !lacks;
                match wanted.last_mut() {
                    Some(last) if *lacks && last.end() == unit.start => last.bytes += unit.bytes,
                    _ if *lacks && unit.bytes > 0 => wanted.push(Run {
                        start: unit.start,
                        bytes: unit.bytes,
                    }),
                    _ => {}
                }
            }
            if content.partial {
                content.sent = within(&wanted, content);
            }
        }
        match self.packed.clone().with_list(list) {
            // So many pieces are more than a list may have: all of each file comes.
            Err(PackError::Refused(_)) => self.whole(),
            bundle => bundle,
        }
    }

    fn whole(&self) -> Result<Packed, PackError> {
        let mut list = self.packed.list().clone();
        for entry in &mut list.entries {
            if let Some(Kind::File(content)) = &mut entry.kind {
                content.blocks = Vec::new();
            }
        }
        self.packed.clone().with_list(list)
    }
}

/// As long as it takes for all files to have no more than [`BLOCKS_MAX`].
fn block_bytes(list: &List) -> u64 {
    let sizes = || {
        let contents = list.entries.iter().filter_map(Entry::content);
        let sizes = contents.map(|content| content.bytes);
        sizes.filter(|&bytes| bytes >= BLOCKED_FROM_BYTES)
    };
    let mut block_bytes = BLOCK_BYTES_MIN;
    while sizes()
        .map(|bytes| bytes.div_ceil(block_bytes) - 1)
        .sum::<u64>()
        > BLOCKS_MAX
    {
        block_bytes *= 2;
    }
    block_bytes
}

fn hash(
    packed: &Packed,
    place: usize,
    entry: &Entry,
    as_found: &Content,
    block_bytes: u64,
    piece: &mut [u8],
    content: &mut Content,
) -> Result<(), PackError> {
    let (mut whole, mut block) = (Sha256::new(), Sha256::new());
    let bytes = content.bytes;
    let blocked = bytes >= BLOCKED_FROM_BYTES;
    let all = (bytes > 0).then_some(Run { start: 0, bytes });
    let mut blocks = Vec::new();
    packed.read_content(
        place,
        entry,
        as_found,
        all.into_iter(),
        piece,
        |read, end| {
            whole.update(read);
            let mut rest = if blocked { read } else { &[] };
            let mut at = end - rest.len() as u64;
            while !rest.is_empty() {
                let room = block_bytes - at % block_bytes;
                let now;
                (now, rest) = rest.split_at((rest.len() as u64).min(room) as usize);
                block.update(now);
                at += now.len() as u64;
                if at.is_multiple_of(block_bytes) || at == bytes {
                    blocks.extend_from_slice(&block.finalize_reset());
                }
            }
            Ok(())
        },
    )?;
    content.sha256 = whole.finalize().to_vec();
    content.blocks = blocks;
    Ok(())
}

/// What of these runs is there.
fn within(wanted: &[Run], content: &Content) -> Vec<Run> {
    let mut found = Vec::new();
    let mut there = content.runs().peekable();
    for one in wanted {
        while let Some(run) = there.peek() {
            let (start, end) = (run.start.max(one.start), run.end().min(one.end()));
            if start < end {
                let bytes = end - start;
                found.push(Run { start, bytes });
            }
            if run.end() > one.end() {
                break;
            }
            there.next();
        }
    }
    found
}
