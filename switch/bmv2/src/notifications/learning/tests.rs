use super::*;
use proptest::prelude::*;

const LIST: u16 = 3;

fn lists() -> LearnLists {
    LearnLists::new([1, LIST])
}

/// Buffer, how many samples, and their bytes.
fn parts(buffer: Buffer) -> (u64, u32, Vec<u8>) {
    let Buffer::Learned {
        list,
        buffer,
        samples,
        data,
    } = buffer
    else {
        panic!("{buffer:?}");
    };
    assert_eq!(list, i32::from(LIST));
    (buffer, samples, data)
}

fn offer(lists: &mut LearnLists, samples: &[u8], now_us: u64) -> Vec<(u64, u32, Vec<u8>)> {
    let due = samples.iter();
    let due = due.flat_map(|sample| lists.offer(LIST, &[*sample, 0xee], now_us));
    due.map(parts).collect()
}

/// Buffers of the samples, as they are sent.
fn data(samples: &[u8]) -> Vec<u8> {
    samples.iter().flat_map(|sample| [*sample, 0xee]).collect()
}

#[test]
fn a_buffer_is_sent_when_it_is_full() {
    let mut lists = lists();
    let first: Vec<u8> = (0..15).collect();
    assert_eq!(offer(&mut lists, &first, 0), []);
    let all: Vec<u8> = (0..16).collect();
    assert_eq!(offer(&mut lists, &[15], 0), [(0, 16, data(&all))]);
    lists.set_buffer_samples(LIST, 1);
    assert_eq!(offer(&mut lists, &[20], 0), [(1, 1, data(&[20]))]);
    // BMv2 takes 0 for 1.
    lists.set_buffer_samples(LIST, 0);
    assert_eq!(offer(&mut lists, &[21], 0), [(2, 1, data(&[21]))]);
    assert_eq!(lists.counts().sent, 18);
}

#[test]
fn a_smaller_size_sends_what_is_there() {
    let mut lists = lists();
    assert_eq!(lists.set_buffer_samples(LIST, 4), None, "there is nothing");
    assert_eq!(offer(&mut lists, &[1, 2, 3], 0), []);
    let due = lists.set_buffer_samples(LIST, 2).map(parts);
    assert_eq!(due, Some((0, 3, data(&[1, 2, 3]))));
    assert_eq!(lists.set_buffer_samples(9, 2), None, "no such list");
}

#[test]
fn a_buffer_is_sent_when_its_first_sample_has_waited() {
    let mut lists = lists();
    assert_eq!(lists.due_us(), None);
    assert_eq!(offer(&mut lists, &[1], 500), []);
    assert_eq!(offer(&mut lists, &[2], 900_000), []);
    assert_eq!(lists.due_us(), Some(1_000_500));
    assert_eq!(lists.poll(1_000_499), []);
    let due = lists.poll(1_000_500).into_iter().map(parts);
    assert_eq!(due.collect::<Vec<_>>(), [(0, 2, data(&[1, 2]))]);
    assert_eq!(lists.due_us(), None);
    // Without a timeout, only a full buffer is due.
    lists.set_timeout(LIST, 0);
    assert_eq!(offer(&mut lists, &[3], 2_000_000), []);
    assert_eq!(lists.due_us(), None);
    lists.set_timeout(LIST, 5);
    assert_eq!(lists.due_us(), Some(2_005_000));
}

#[test]
fn what_was_sent_is_sent_again_only_once_it_is_acknowledged() {
    let mut lists = lists();
    lists.set_buffer_samples(LIST, 2);
    assert_eq!(offer(&mut lists, &[1, 1, 2], 0), [(0, 2, data(&[1, 2]))]);
    assert_eq!(offer(&mut lists, &[1, 2, 3], 0), []);
    lists.acknowledge(LIST, 0, &[1, 1, -1, 2, i32::MAX]);
    assert_eq!(offer(&mut lists, &[1], 0), [], "only 2 was acknowledged");
    assert_eq!(offer(&mut lists, &[2], 0), [(1, 2, data(&[3, 2]))]);
    // The 2 of the first buffer was acknowledged before: this is about 1 alone.
    lists.acknowledge_buffer(LIST, 0);
    assert_eq!(offer(&mut lists, &[2, 3, 1], 0), []);
    lists.acknowledge_buffer(LIST, 0);
    lists.acknowledge_buffer(LIST, 77);
    lists.acknowledge_buffer(9, 0);
    lists.acknowledge(9, 0, &[0]);
    lists.acknowledge(LIST, 77, &[0]);
    assert_eq!(offer(&mut lists, &[4], 0), [(2, 2, data(&[1, 4]))]);
    assert_eq!(lists.counts().duplicates, 6);
}

/// As in BMv2, an acknowledgement of what has not been sent yet does not keep it back.
#[test]
fn an_acknowledgement_ahead_of_its_buffer() {
    let mut lists = lists();
    assert_eq!(offer(&mut lists, &[1], 0), []);
    lists.acknowledge_buffer(LIST, 0);
    assert_eq!(offer(&mut lists, &[1], 0), []);
    lists.set_buffer_samples(LIST, 3);
    assert_eq!(offer(&mut lists, &[2], 0), [(0, 3, data(&[1, 1, 2]))]);
}

#[test]
fn lists_are_apart_and_others_are_none() {
    let mut lists = lists();
    lists.set_buffer_samples(LIST, 1);
    assert_eq!(lists.offer(1, &[1, 0xee], 0), []);
    assert_eq!(offer(&mut lists, &[1], 0).len(), 1);
    assert_eq!(lists.offer(9, &[1], 0), []);
}

#[test]
fn a_reset_forgets_samples_and_keeps_settings() {
    let mut lists = lists();
    lists.set_buffer_samples(LIST, 2);
    lists.set_timeout(LIST, 7);
    assert_eq!(offer(&mut lists, &[1, 2, 3], 0).len(), 1);
    lists.reset();
    assert_eq!(lists.due_us(), None);
    assert_eq!(offer(&mut lists, &[1], 100), []);
    assert_eq!(lists.due_us(), Some(7_100));
    assert_eq!(offer(&mut lists, &[3], 100), [(0, 2, data(&[1, 3]))]);
}

#[test]
fn the_oldest_buffer_is_forgotten_for_want_of_room() {
    let mut lists = lists();
    lists.set_buffer_samples(LIST, 16);
    let mut buffers = 0;
    for number in 0..UNACKNOWLEDGED_MAX as u32 {
        buffers += lists.offer(LIST, &number.to_be_bytes(), 0).len();
    }
    assert_eq!(buffers, UNACKNOWLEDGED_MAX / 16);
    assert_eq!(lists.counts().forgotten, 0);
    assert_eq!(lists.offer(LIST, &u32::MAX.to_be_bytes(), 0), []);
    assert_eq!(lists.counts().forgotten, 16);
    assert_eq!(lists.offer(LIST, &17_u32.to_be_bytes(), 0), []);
    assert_eq!(lists.counts().duplicates, 1, "that one waits still");
    assert_eq!(lists.offer(LIST, &3_u32.to_be_bytes(), 0), []);
    assert_eq!(lists.counts().duplicates, 1, "that one is news");
}

#[test]
fn a_buffer_is_no_longer_than_subscribers_take() {
    let mut lists = lists();
    lists.set_buffer_samples(LIST, u32::MAX);
    let long = BUFFER_BYTES_MAX / 2 + 1;
    assert_eq!(lists.offer(LIST, &vec![1; long], 0), []);
    let due = lists.offer(LIST, &vec![2; long], 0);
    assert_eq!(due.len(), 1);
    let bytes = due[0].to_bytes(0);
    assert_eq!(bytes.len(), 32 + long);
    assert!(bytes.len() <= MESSAGE_BYTES_MAX);
}

#[derive(Clone, Debug)]
enum Step {
    Offer(u8),
    Acknowledge(u64, Vec<i32>),
    AcknowledgeBuffer(u64),
    Size(u32),
    Poll(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u8..12).prop_map(Step::Offer),
        1 => (0_u64..20, prop::collection::vec(-1..5, 0..4))
            .prop_map(|(buffer, samples)| Step::Acknowledge(buffer, samples)),
        1 => (0_u64..20).prop_map(Step::AcknowledgeBuffer),
        1 => (0_u32..5).prop_map(Step::Size),
        1 => (0_u64..3_000_000).prop_map(Step::Poll),
    ]
}

proptest! {
    /// Buffers count up, hold what they say, and no sample is in two of them unless one
    /// was acknowledged.
    #[test]
    fn no_sample_is_sent_twice_unacknowledged(steps in prop::collection::vec(step(), 0..200)) {
        let mut lists = lists();
        let mut open: BTreeMap<u64, Vec<Option<u8>>> = BTreeMap::new();
        let mut next = 0;
        let mut filling = Vec::new();
        for step in steps {
            let due = match step {
                Step::Offer(value) => {
                    let is_known = filling.contains(&value)
                        || open.values().flatten().any(|known| *known == Some(value));
                    if !is_known {
                        filling.push(value);
                    }
                    lists.offer(LIST, &[value], 0)
                }
                // Buffers that were not sent are left out: see the test above.
                Step::Acknowledge(buffer, samples) if buffer < next => {
                    if let Some(samples_of) = open.get_mut(&buffer) {
                        for place in samples.iter().filter_map(|place| usize::try_from(*place).ok()) {
                            if let Some(sample) = samples_of.get_mut(place) {
                                *sample = None;
                            }
                        }
                    }
                    lists.acknowledge(LIST, buffer, &samples);
                    Vec::new()
                }
                Step::AcknowledgeBuffer(buffer) if buffer < next => {
                    open.remove(&buffer);
                    lists.acknowledge_buffer(LIST, buffer);
                    Vec::new()
                }
                Step::Size(samples) => {
                    lists.set_buffer_samples(LIST, samples).into_iter().collect()
                }
                Step::Poll(now_us) => lists.poll(now_us),
                _ => Vec::new(),
            };
            for (buffer, samples, data) in due.into_iter().map(parts) {
                prop_assert_eq!(buffer, next);
                next += 1;
                prop_assert_eq!(&data, &filling);
                prop_assert_eq!(samples as usize, filling.len());
                open.insert(buffer, filling.drain(..).map(Some).collect());
            }
        }
    }
}
