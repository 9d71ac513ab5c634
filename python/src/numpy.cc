#include "numpy.h"

#include <array>
#include <string>

#include "rhizome/types.h"

namespace rhizome::python {
namespace {

/// Returns the NumPy type of a DataType; each is created once.
PyObject* NumpyType(DataType dtype) {
  static std::array<PyObject*, 16> types = {};
  PyObject*& type = types.at(static_cast<std::size_t>(dtype));
  if (type == nullptr) type = python::NumpyType(std::string(DataTypeName(dtype)).c_str());
  return type;
}

/// Calls numpy.empty. `shape` is an int or a tuple of ints.
Filled<std::byte> Empty(const nb::object& shape, PyObject* dtype) {
  static PyObject* const empty = Kept("numpy", "empty");
  nb::object array = nb::handle(empty)(shape, nb::handle(dtype));
  // The stable ABI of Python 3.10 does not include the buffer functions.
  const auto view = nb::cast<nb::ndarray<nb::c_contig, nb::device::cpu>>(array, false);
  const std::span bytes(static_cast<std::byte*>(view.data()), view.nbytes());
  return {std::move(array), bytes};
}

nb::dlpack::dtype DlpackType(DataType dtype) {
  using Code = nb::dlpack::dtype_code;
  const bool real = dtype == DataType::kFloat32 || dtype == DataType::kFloat16;
  const bool whole = dtype == DataType::kInt64 || dtype == DataType::kInt32;
  return {static_cast<std::uint8_t>(real    ? Code::Float
                                    : whole ? Code::Int
                                            : Code::UInt),
          static_cast<std::uint8_t>(8 * DataTypeBytes(dtype)), 1};
}

}  // namespace

PyObject* Kept(const char* module, const char* name) {
  return nb::object(nb::module_::import_(module).attr(name)).release().ptr();
}

PyObject* NumpyType(const char* name) {
  return nb::module_::import_("numpy").attr("dtype")(name).release().ptr();
}

Filled<std::byte> NewValues(std::size_t size, PyObject* dtype) {
  return Empty(nb::int_(size), dtype);
}

Filled<std::byte> NewRow(DataType dtype, std::size_t dim) {
  return Empty(nb::int_(dim), NumpyType(dtype));
}

Filled<std::byte> NewRows(DataType dtype, std::size_t rows, std::size_t dim) {
  return Empty(nb::make_tuple(rows, dim), NumpyType(dtype));
}

std::span<std::byte> WritableRows(nb::handle out, DataType dtype, std::size_t rows,
                                  std::size_t dim) {
  nb::ndarray<nb::c_contig, nb::device::cpu> array;
  const std::string wanted = "a writable C-contiguous array of " +
                             std::string(DataTypeName(dtype)) + " of shape (" +
                             std::to_string(rows) + ", " + std::to_string(dim) + ")";
  if (!nb::try_cast(out, array, false) || array.dtype() != DlpackType(dtype))
    throw nb::type_error(("out must be " + wanted).c_str());
  if (array.ndim() != 2 || array.shape(0) != rows || array.shape(1) != dim)
    throw nb::value_error(("out must be " + wanted).c_str());
  return {static_cast<std::byte*>(array.data()), array.nbytes()};
}

}  // namespace rhizome::python
