#include "array_file.h"

#include <nanobind/stl/string.h>

#include <cstring>

#include "index/ingest/row_sources.h"

namespace rhizome::python {
namespace {

/// The rows of a NumPy array as a source for the engine.
class SpanRows final : public RowSource {
 public:
  SpanRows(std::span<const std::byte> bytes, std::uint64_t row_count, std::uint64_t width,
           DataType type)
      : bytes_(bytes) {
    rows = row_count;
    dim = width;
    dtype = type;
  }
  Status Read(std::span<std::byte> out) override {
    std::memcpy(out.data(), bytes_.data(), out.size());
    bytes_ = bytes_.subspan(out.size());
    return Status::Ok();
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

ArrayFile FileArrayOf(const std::string& name, nb::handle source, const std::string& dtype) {
  ArrayFile file;
  file.name = name;
  if (nb::isinstance<nb::str>(source)) {
    file.path = nb::cast<std::string>(source);
    return file;
  }
  using Matrix = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu, nb::ro>;
  const auto values = nb::cast<Matrix>(source, false);
  const DataType type = ParseDataType(dtype).value_or(DataType::kInvalid);
  if (type == DataType::kInvalid || DataTypeBytes(type) != values.itemsize())
    throw nb::type_error(("array '" + name + "': no array can be of type " + dtype).c_str());
  file.path = "the array '" + name + "'";
  const std::span bytes(static_cast<const std::byte*>(values.data()), values.nbytes());
  file.open = [bytes, type, rows = values.shape(0),
               dim = values.shape(1)](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
    return std::make_unique<SpanRows>(bytes, rows, dim, type);
  };
  return file;
}

ArrayLayout LayoutOf(std::string_view name) {
  if (name == "row") return ArrayLayout::kRow;
  if (name == "chunk") return ArrayLayout::kChunk;
  throw nb::value_error("a layout is 'row' or 'chunk'");
}

}  // namespace rhizome::python
