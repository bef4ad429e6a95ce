package informixcdc;

import java.io.IOException;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * The transaction within which a batch in real-time mode has ended: all before it are delivered, and
 * its first changes.
 *
 * <p>Rule: it counts stored changes, not rows, because another query may make other rows of them. It is
 * read from the segments, which have the commit of each change; delivered rows need not.
 */
record CutTransaction(long commit, long rows) {

  /** Return the transaction of the last of a range's delivered rows, of which there is at least one. */
  static CutTransaction after(long delivered, InputPartition[] range) throws IOException {
    Counter counter = new Counter(delivered);
    for (InputPartition partition : range) {
      ReaderForm form = SegmentRange.formOf(partition);
      for (SegmentRange segment : SegmentRange.of(partition)) {
        segment.requireSound();
        try (SegmentReader reader = SegmentReader.ofChanges(segment, form)) {
          while (reader.nextChanges()) {
            if (reader.count(counter)) {
              return new CutTransaction(counter.commit, counter.changes);
            }
          }
        }
      }
    }
    throw new IOException("a range has fewer rows than were delivered of it");
  }

  /** Return this one, with the changes that the batches before have delivered of it. */
  CutTransaction continuing(CutTransaction before) {
    boolean isSame = before != null && before.commit == commit;
    return isSame ? new CutTransaction(commit, before.rows + rows) : this;
  }

  /** Counts the changes of each transaction up to the last delivered row. */
  static final class Counter {
    private long left; // rows
    private long commit;
    private long changes; // of this commit

    Counter(long rows) {
      left = rows;
    }

    boolean isEnough(long commitOfChange, boolean isRow) {
      changes = commitOfChange == commit ? changes + 1 : 1;
      commit = commitOfChange;
      left -= isRow ? 1 : 0;
      return left == 0;
    }
  }
}
