#include "numpy.h"

#include <array>
#include <string>

#include "rhizome/types.h"

namespace rhizome::python {
namespace {

/// Returns the type of ml_dtypes, or V2 (two bytes) where that package is not installed: NumPy has
/// no bfloat16.
PyObject* Bfloat16Type() {
  try {
    nb::module_::import_("ml_dtypes");
    return python::NumpyType("bfloat16");
  } catch (nb::python_error& missing) {
    if (!missing.matches(PyExc_ImportError)) throw;
    return python::NumpyType("V2");
  }
}

}  // namespace

PyObject* NumpyType(DataType dtype) {
  static std::array<PyObject*, 16> types = {};
  PyObject*& type = types.at(static_cast<std::size_t>(dtype));
  if (type == nullptr && dtype == DataType::kBfloat16) type = Bfloat16Type();
  if (type == nullptr) type = python::NumpyType(std::string(DataTypeName(dtype)).c_str());
  return type;
}

namespace {

/// Calls numpy.empty. `shape` is an int or a tuple of ints.
Filled<std::byte> Empty(const nb::object& shape, PyObject* dtype) {
  static PyObject* const empty = Kept("numpy", "empty");
  nb::object array = nb::handle(empty)(shape, nb::handle(dtype));
  // The stable ABI of Python 3.10 does not include the buffer functions.
  const auto view = nb::cast<nb::ndarray<nb::c_contig, nb::device::cpu>>(array, false);
  const std::span bytes(static_cast<std::byte*>(view.data()), view.nbytes());
  return {std::move(array), bytes};
}

/// As above; an array of bfloat16, whose memory NumPy does not lend, is a view of uint16.
Filled<std::byte> EmptyOf(DataType dtype, const nb::object& shape) {
  if (dtype != DataType::kBfloat16) return Empty(shape, NumpyType(dtype));
  static PyObject* const bits = python::NumpyType("uint16");
  auto made = Empty(shape, bits);
  made.array = made.array.attr("view")(nb::handle(NumpyType(dtype)));
  return made;
}

/// Returns the DLPack type of an array; of bfloat16, which is lent as uint16, that type.
nb::dlpack::dtype DlpackType(DataType dtype) {
  using Code = nb::dlpack::dtype_code;
  const std::string_view name = DataTypeName(dtype);
  return {static_cast<std::uint8_t>(name == "bool"              ? Code::Bool
                                    : name.starts_with("float") ? Code::Float
                                    : name.starts_with("int")   ? Code::Int
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

nb::object WithoutNulls(nb::object rows, std::optional<std::int64_t> null) {
  if (!null) return rows;
  static PyObject* const masked = Kept("rhizome._masked", "masked");
  return nb::handle(masked)(rows, *null);
}

Filled<std::byte> NewRow(DataType dtype, std::size_t dim) { return EmptyOf(dtype, nb::int_(dim)); }

Filled<std::byte> NewRows(DataType dtype, std::size_t rows, std::size_t dim) {
  return EmptyOf(dtype, nb::make_tuple(rows, dim));
}

std::span<std::byte> WritableRows(nb::handle out, DataType dtype, std::size_t rows,
                                  std::size_t dim) {
  nb::ndarray<nb::c_contig, nb::device::cpu> array;
  const std::string wanted = "a writable C-contiguous array of " +
                             std::string(DataTypeName(dtype)) + " of shape (" +
                             std::to_string(rows) + ", " + std::to_string(dim) + ")";
  nb::object lent = nb::borrow(out);
  if (dtype == DataType::kBfloat16 && nb::hasattr(out, "dtype") &&
      out.attr("dtype").equal(nb::handle(NumpyType(dtype))))
    lent = out.attr("view")("uint16");
  if (!nb::try_cast(lent, array, false) || array.dtype() != DlpackType(dtype))
    throw nb::type_error(("out must be " + wanted).c_str());
  if (array.ndim() != 2 || array.shape(0) != rows || array.shape(1) != dim)
    throw nb::value_error(("out must be " + wanted).c_str());
  return {static_cast<std::byte*>(array.data()), array.nbytes()};
}

}  // namespace rhizome::python
