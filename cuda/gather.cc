#include "rhizome/cuda/gather.h"

#include <cstring>
#include <string>

#include "rhizome/cuda/gather_kernel.h"

namespace rhizome::inline internal {
namespace {

Status CheckArguments(std::span<const std::byte> table, std::size_t row_bytes,
                      std::span<const std::int64_t> rows, std::span<const std::byte> out) {
  if (row_bytes == 0 || table.size() % row_bytes != 0) {
    return Status::InvalidArgument("gather: a table of " + std::to_string(table.size()) +
                                   " bytes does not divide into rows of " +
                                   std::to_string(row_bytes) + " bytes");
  }
  if (out.size() % row_bytes != 0 || out.size() / row_bytes != rows.size()) {
    return Status::InvalidArgument("gather: the output has " + std::to_string(out.size()) +
                                   " bytes, not room for exactly " + std::to_string(rows.size()) +
                                   " rows of " + std::to_string(row_bytes) + " bytes");
  }
  const std::uint64_t row_count = table.size() / row_bytes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || static_cast<std::uint64_t>(rows[i]) >= row_count) {
      return Status::InvalidArgument("gather: row " + std::to_string(rows[i]) + " at position " +
                                     std::to_string(i) + " lies outside the table's " +
                                     std::to_string(row_count) + " rows");
    }
  }
  return Status::Ok();
}

}  // namespace

bool CudaAvailable() { return cuda::DeviceAvailable(); }

Status GatherRowsCpu(std::span<const std::byte> table, std::size_t row_bytes,
                     std::span<const std::int64_t> rows, std::span<std::byte> out) {
  RHIZOME_RETURN_IF_ERROR(CheckArguments(table, row_bytes, rows, out));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(out.data() + i * row_bytes,
                table.data() + static_cast<std::size_t>(rows[i]) * row_bytes, row_bytes);
  }
  return Status::Ok();
}

Status GatherRowsCuda(std::span<const std::byte> table, std::size_t row_bytes,
                      std::span<const std::int64_t> rows, std::span<std::byte> out) {
  RHIZOME_RETURN_IF_ERROR(CheckArguments(table, row_bytes, rows, out));
  const cuda::KernelOutcome outcome =
      cuda::GatherRows(table.data(), table.size(), row_bytes, rows.data(), rows.size(), out.data());
  switch (outcome.kind) {
    case cuda::KernelOutcome::Kind::kOk:
      return Status::Ok();
    case cuda::KernelOutcome::Kind::kNoDevice:
      return Status::Unsupported(std::string("gather on the device: ") + outcome.message);
    case cuda::KernelOutcome::Kind::kOutOfMemory:
      return Status::OutOfMemory(std::string("gather on the device: ") + outcome.message);
    case cuda::KernelOutcome::Kind::kFailed:
      break;
  }
  return Status::IoError(std::string("gather on the device failed: ") + outcome.message);
}

}  // namespace rhizome::inline internal
