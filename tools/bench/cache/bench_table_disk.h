#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/job_control.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "tools/cli/json.h"

namespace rhizome {

/// The part of `bench tables` that reads and writes a table on disk.
struct TableDiskOptions {
  std::string dir = ".";
  std::uint64_t rows = 0;
  std::uint64_t dim = 128;  ///< numbers of a value; Adagrad has as many in the state
  std::uint64_t max_step_rows = 0;
  std::vector<double> shares;
};

/// Measures the epochs of `traces` with a TableCache whose memory holds the shares of the rows, and
/// with all rows in memory; then an epoch of BETA with parts of the same table, read and written
/// sequentially. Rows are updated, but nothing is computed. Returns an object for each share.
/// `beta_parts`: the number of parts for each share.
Result<Json> MeasureTables(const TableDiskOptions& options, const std::vector<Trace>& traces,
                           const std::vector<std::uint32_t>& beta_parts, const JobControl& control);

}  // namespace rhizome
