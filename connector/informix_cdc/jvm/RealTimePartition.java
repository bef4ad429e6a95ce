package informixcdc;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;

/**
 * All rows after an offset, as they come, until Spark ends the batch.
 *
 * @param source the name of the driver's endpoint that knows the ranges
 */
record RealTimePartition(String source, String start) implements InputPartition {

  /** Where a batch has ended: an offset of the Python source. */
  record End(String json) implements PartitionOffset {}
}
