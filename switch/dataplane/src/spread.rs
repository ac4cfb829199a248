//! Spreading the inputs of a switch over the threads that share it.

/// Which thread has which input: `loads` are the frames of each of late, `threads` where it
/// is now, below `count`. None if things had better stay: moving an input empties caches.
///
/// The busiest input goes to the thread with the least so far, then the next (Graham 1969,
/// longest processing time first: at most 4/3 of the least possible).
pub(super) fn spread(loads: &[u64], threads: &[usize], count: usize) -> Option<Vec<usize>> {
    let most = |threads: &[usize]| {
        let mut sums = vec![0; count];
        for (thread, load) in threads.iter().zip(loads) {
            sums[*thread] += load;
        }
        sums.into_iter().max().unwrap_or(0)
    };
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by_key(|input| std::cmp::Reverse(loads[*input]));
    let mut sums = vec![0; count];
    let mut better = threads.to_vec();
    for input in order.into_iter().filter(|input| loads[*input] > 0) {
        // Where several have as little, it stays if it can.
        let least = (0..count).min_by_key(|thread| (sums[*thread], *thread != threads[input]))?;
        better[input] = least;
        sums[least] += loads[input];
    }
    let (now, then) = (most(threads), most(&better));
    (then < now - now / 5).then_some(better)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_move_when_a_thread_has_too_much() {
        // Two busy inputs on one thread part; the idle one stays.
        let moved = spread(&[500, 0, 400], &[0, 1, 0], 2).unwrap();
        assert_eq!(moved[1], 1);
        assert_ne!(moved[0], moved[2]);
        // One that is busier than all others together has a thread of its own.
        let moved = spread(&[300, 900, 10, 10], &[0, 0, 1, 1], 2).unwrap();
        assert!([0, 2, 3].iter().all(|input| moved[*input] != moved[1]));
    }

    #[test]
    fn inputs_stay_when_little_would_be_won() {
        assert_eq!(spread(&[500, 400], &[1, 0], 2), None);
        assert_eq!(spread(&[100, 100, 100], &[0, 0, 1], 2), None);
        assert_eq!(spread(&[100, 110, 100, 90], &[0, 0, 1, 1], 2), None);
        assert_eq!(spread(&[0, 0], &[0, 0], 2), None);
        assert_eq!(spread(&[], &[], 4), None);
        assert_eq!(spread(&[9], &[0], 1), None);
    }
}
