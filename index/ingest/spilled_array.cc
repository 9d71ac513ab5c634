// Array files that exceed memory. Begin distributes the rows of the file to buckets by their row in
// the store; Read fills one bucket at a time and returns its rows in order. A dense file stores
// whole rows in the buckets, a sparse file stores triplets.

#include "index/ingest/spilled_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "index/ingest/array_file.h"
#include "index/ingest/array_triplets.h"
#include "index/ingest/row_sources.h"
#include "index/input/convert.h"
#include "index/topology/type_rows.h"
#include "index/topology/vertex_order.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::string_view kPermutePhase = "permute arrays";

/// Distributes rows, in the store's order, to buckets that each fit in memory.
class RowBuckets {
 public:
  RowBuckets(SpillSpace& space, std::uint64_t memory_bytes)
      : space_(space), memory_bytes_(memory_bytes) {}

  Status Open(std::uint64_t rows, std::uint64_t row_bytes) {
    rows_of_bucket_ = std::max<std::uint64_t>(memory_bytes_ / 2 / row_bytes, 1);
    const std::uint64_t buckets = (rows + rows_of_bucket_ - 1) / rows_of_bucket_;
    for (std::uint64_t i = 0; i < buckets; ++i) {
      RHIZOME_ASSIGN_OR_RETURN(
          SpillWriter writer,
          SpillWriter::Create(space_, SpillBlockBytes(memory_bytes_ / 4, buckets)));
      writers_.push_back(std::move(writer));
    }
    return Status::Ok();
  }

  /// `record` must begin with PlaceOf(row).
  Status Append(std::uint64_t row, std::span<const std::byte> record) {
    return writers_[row / rows_of_bucket_].Append(record);
  }
  std::uint64_t PlaceOf(std::uint64_t row) const { return row % rows_of_bucket_; }

  Status Finish() {
    for (SpillWriter& writer : writers_) {
      RHIZOME_ASSIGN_OR_RETURN(SpillFile file, writer.Finish());
      files_.push_back(std::move(file));
    }
    writers_.clear();
    return Status::Ok();
  }

  std::uint64_t rows_of_bucket() const { return rows_of_bucket_; }
  SpillFile& file(std::uint64_t bucket) { return files_[bucket]; }

 private:
  SpillSpace& space_;
  const std::uint64_t memory_bytes_;
  std::uint64_t rows_of_bucket_ = 1;
  std::vector<SpillWriter> writers_;
  std::vector<SpillFile> files_;
};

/// The part common to dense and sparse files: buckets, read one after another.
class BucketedArray : public SpilledArray {
 public:
  BucketedArray(IngestContext& context, const ArrayFile& file, SpillSpace& space,
                std::uint64_t memory_bytes)
      : context_(context),
        file_(file),
        space_(space),
        memory_bytes_(memory_bytes),
        buckets_(space, memory_bytes) {}

  // Opens the buckets and makes the first pass: every row of the file goes to the bucket of its row
  // in the store. Read makes the second pass, bucket by bucket.
  Status Begin(const VertexOrder& order, std::uint64_t vertices,
               std::span<const VertexId> vertex_of_row, const TypeRows* of_type) override {
    store_rows_ = of_type == nullptr ? vertices : of_type->count();
    std::optional<VertexId> other;  // a vertex of another type than the array's
    const auto row_of = [&](VertexId vertex) -> std::int64_t {
      const Row row = static_cast<std::uint64_t>(vertex) < order.size() ? order.RowOf(vertex)
                                                                        : static_cast<Row>(vertex);
      if (of_type == nullptr) return row;
      if (of_type->Has(static_cast<std::uint64_t>(row)))
        return static_cast<std::int64_t>(of_type->RankOf(static_cast<std::uint64_t>(row)));
      other = vertex;
      return -1;
    };
    RHIZOME_RETURN_IF_ERROR(buckets_.Open(store_rows_, row_bytes()));
    RHIZOME_RETURN_IF_ERROR(Divide([&](std::uint64_t row) -> std::int64_t {
      if (vertex_of_row.empty()) return row_of(static_cast<VertexId>(row));
      const VertexId vertex = row < vertex_of_row.size() ? vertex_of_row[row] : -1;
      return vertex < 0 ? -1 : row_of(vertex);
    }));
    if (other)
      return Status::InvalidArgument(fmt::format(
          "array '{}': {} has a row for vertex {}, which has another type than the array", name,
          path, *other));
    return buckets_.Finish();
  }

  Status Read(std::span<std::byte> out) override {
    while (!out.empty()) {
      if (taken_ == bucket_.size()) RHIZOME_RETURN_IF_ERROR(LoadNext());
      const std::size_t bytes = std::min(out.size(), bucket_.size() - taken_);
      std::memcpy(out.data(), bucket_.data() + taken_, bytes);
      taken_ += bytes;
      out = out.subspan(bytes);
    }
    return Status::Ok();
  }

 protected:
  /// Appends every row of the file to the bucket of `row_of(row)`, unless that is -1.
  virtual Status Divide(const std::function<std::int64_t(std::uint64_t)>& row_of) = 0;

  /// Copies a bucket's records into its rows, which initially have the values of FillMissingRows:
  /// zeros for triplets, whose type is a float.
  virtual Status Fill(SpillReader& reader, std::span<std::byte> rows) = 0;

  IngestContext& context_;
  const ArrayFile file_;
  SpillSpace& space_;
  const std::uint64_t memory_bytes_;
  RowBuckets buckets_;

 private:
  Status LoadNext() {
    const std::uint64_t first = next_bucket_ * buckets_.rows_of_bucket();
    if (first >= store_rows_) return Status::InvalidArgument("no more rows of a spilled array");
    const std::uint64_t count = std::min(buckets_.rows_of_bucket(), store_rows_ - first);
    bucket_.resize(count * row_bytes());
    FillMissingRows(missing, bucket_);
    taken_ = 0;
    {
      RHIZOME_ASSIGN_OR_RETURN(SpillReader reader,
                               SpillReader::Open(buckets_.file(next_bucket_), /*ahead=*/true));
      RHIZOME_RETURN_IF_ERROR(Fill(reader, bucket_));
    }
    buckets_.file(next_bucket_).Remove();
    ++next_bucket_;
    return Status::Ok();
  }

  std::uint64_t store_rows_ = 0;
  std::uint64_t next_bucket_ = 0;
  std::vector<std::byte> bucket_;
  std::size_t taken_ = 0;
};

class SpilledDense final : public BucketedArray {
 public:
  using BucketedArray::BucketedArray;

  Status Open() {
    RHIZOME_ASSIGN_OR_RETURN(const auto source, OpenRows(context_.fs, file_));
    rows = source->rows;
    exact_rows = true;
    dim = source->dim;
    dtype = file_.dtype.value_or(source->dtype);
    RHIZOME_RETURN_IF_ERROR(
        context_.CheckMemory(ArrayPlace(file_), source->memory_bytes() + 4 * row_bytes()));
    return CheckRows(file_, *source, dtype);
  }

 private:
  Status Divide(const std::function<std::int64_t(std::uint64_t)>& row_of) override {
    RHIZOME_ASSIGN_OR_RETURN(auto source, OpenRows(context_.fs, file_));
    if (source->rows != rows || source->dim != dim)
      return Status::InvalidArgument(
          fmt::format("{}: the file changed while it was read", ArrayPlace(file_)));
    const std::size_t from_bytes = DataTypeBytes(source->dtype) * dim;
    const std::uint64_t block_rows = std::max<std::uint64_t>(
        std::min<std::uint64_t>(memory_bytes_ / 16, 1 << 20) / from_bytes, 1);
    std::vector<std::byte> in;
    std::vector<std::byte> converted;
    std::vector<std::byte> record(sizeof(std::uint64_t) + row_bytes());
    for (std::uint64_t done = 0; done < rows; done += block_rows) {
      const std::uint64_t count = std::min(block_rows, rows - done);
      in.resize(count * from_bytes);
      RHIZOME_RETURN_IF_ERROR(source->Read(in));
      converted.resize(count * row_bytes());
      if (const auto bad = ConvertElements(source->dtype, in, dtype, converted))
        return ValueDoesNotFit(file_, done + *bad / dim, *bad % dim, dtype);
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::int64_t row = row_of(done + i);
        if (row < 0) continue;
        const std::uint64_t place = buckets_.PlaceOf(static_cast<std::uint64_t>(row));
        std::memcpy(record.data(), &place, sizeof(place));
        std::memcpy(record.data() + sizeof(place), converted.data() + i * row_bytes(), row_bytes());
        RHIZOME_RETURN_IF_ERROR(buckets_.Append(static_cast<std::uint64_t>(row), record));
      }
      RHIZOME_RETURN_IF_ERROR(context_.control.Report(
          {.phase = kPermutePhase, .done = done, .total = rows, .detail = ShownName(name)}));
    }
    return source->Finish();
  }

  Status Fill(SpillReader& reader, std::span<std::byte> out) override {
    const std::size_t record_bytes = sizeof(std::uint64_t) + row_bytes();
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(auto block, reader.Next());
      if (block.empty()) return Status::Ok();
      for (; block.size() >= record_bytes; block = block.subspan(record_bytes)) {
        std::uint64_t place = 0;
        std::memcpy(&place, block.data(), sizeof(place));
        std::memcpy(out.data() + place * row_bytes(), block.data() + sizeof(place), row_bytes());
      }
    }
  }
};

class SpilledSparse final : public BucketedArray {
 public:
  using BucketedArray::BucketedArray;

  Status Open() {
    dim = file_.dim;
    dtype = file_.dtype.value_or(DataType::kFloat32);
    RHIZOME_RETURN_IF_ERROR(CheckTripletFile(file_, dtype));
    RHIZOME_ASSIGN_OR_RETURN(SpillWriter writer,
                             SpillWriter::Create(space_, SpillBlockBytes(memory_bytes_ / 4, 2)));
    RHIZOME_RETURN_IF_ERROR(ReadTriplets(
        context_, file_,
        [&](const Triplet& triplet) {
          rows = std::max(rows, triplet.row + 1);
          return writer.Append(std::as_bytes(std::span(&triplet, 1)));
        },
        [] { return std::uint64_t{0}; }));
    RHIZOME_ASSIGN_OR_RETURN(triplets_, writer.Finish());
    return Status::Ok();
  }

 private:
  /// A triplet in its bucket; it keeps the file's row for messages.
  struct Entry {
    std::uint64_t place;
    Triplet triplet;
  };

  Status Divide(const std::function<std::int64_t(std::uint64_t)>& row_of) override {
    RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(triplets_, /*ahead=*/true));
    while (true) {
      RHIZOME_RETURN_IF_ERROR(
          context_.control.Report({.phase = kPermutePhase, .detail = ShownName(name)}));
      RHIZOME_ASSIGN_OR_RETURN(auto block, reader.Next());
      if (block.empty()) break;
      for (; block.size() >= sizeof(Triplet); block = block.subspan(sizeof(Triplet))) {
        Entry entry{};
        std::memcpy(&entry.triplet, block.data(), sizeof(Triplet));
        const std::int64_t row = row_of(entry.triplet.row);
        if (row < 0) continue;
        entry.place = buckets_.PlaceOf(static_cast<std::uint64_t>(row));
        RHIZOME_RETURN_IF_ERROR(
            buckets_.Append(static_cast<std::uint64_t>(row), std::as_bytes(std::span(&entry, 1))));
      }
    }
    triplets_.Remove();
    return Status::Ok();
  }

  // One bit a value marks the values that were set, so that a repeated one is detected.
  Status Fill(SpillReader& reader, std::span<std::byte> out) override {
    const std::size_t element = DataTypeBytes(dtype);
    std::vector<bool> given(out.size() / element);
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(auto block, reader.Next());
      if (block.empty()) return Status::Ok();
      for (; block.size() >= sizeof(Entry); block = block.subspan(sizeof(Entry))) {
        Entry entry{};
        std::memcpy(&entry, block.data(), sizeof(entry));
        const Triplet& triplet = entry.triplet;
        const std::uint64_t at = entry.place * dim + triplet.column;
        if (given[at]) return DuplicateTriplet(file_, triplet.row, triplet.column);
        given[at] = true;
        if (!ConvertTriplet(triplet, dtype, out.subspan(at * element, element)))
          return ValueDoesNotFit(file_, triplet.row, triplet.column, dtype);
      }
    }
  }

  SpillFile triplets_;
};

}  // namespace

Result<std::shared_ptr<SpilledArray>> SpilledArray::Open(IngestContext& context,
                                                         const ArrayFile& file, SpillSpace& space,
                                                         std::uint64_t memory_bytes) {
  std::shared_ptr<SpilledArray> array;
  if (HasRows(context.fs, file)) {
    auto dense = std::make_shared<SpilledDense>(context, file, space, memory_bytes);
    RHIZOME_RETURN_IF_ERROR(dense->Open());
    array = std::move(dense);
  } else {
    auto sparse = std::make_shared<SpilledSparse>(context, file, space, memory_bytes);
    RHIZOME_RETURN_IF_ERROR(sparse->Open());
    array = std::move(sparse);
  }
  array->name = file.name;
  array->path = file.path.string();
  if (file.attributes) array->attributes = *file.attributes;
  array->missing = MissingRowOfNewArray(array->name, array->dtype, array->dim);
  return array;
}

ArrayInput BindSpilledArray(const std::shared_ptr<SpilledArray>& array,
                            const std::shared_ptr<const std::vector<VertexId>>& vertex_of_row) {
  ArrayInput input;
  input.name = array->name;
  input.dim = array->dim;
  input.dtype = array->dtype;
  input.attributes = array->attributes;
  SetMissing(input);
  input.begin = [array, vertex_of_row](const VertexOrder& order, const TypeRows* of_type) {
    return array->Begin(order, order.size(), *vertex_of_row, of_type);
  };
  input.read_rows = [array](std::span<const VertexId>, std::span<std::byte> out) {
    return array->Read(out);
  };
  return input;
}

}  // namespace internal
}  // namespace rhizome
