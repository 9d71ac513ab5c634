#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "array_memory.h"
#include "rhizome/types.h"

namespace rhizome::python {

namespace nb = nanobind;

// Arrays for Python are created in three ways. Memory allocated by NumPy is the fastest for small
// arrays, and for rows that the engine writes in place; a vector of the engine is passed on without
// a copy; NewArray is for arrays that are filled without the GIL.

/// A new NumPy array and its uninitialised memory.
template <typename T>
struct Filled {
  nb::object array;
  std::span<T> values;
};

/// Returns the numpy.dtype of this name. The reference is never released.
PyObject* NumpyType(const char* name);

/// Returns the numpy.dtype of a DataType; each is created once. bfloat16 is the type of ml_dtypes,
/// or V2 where that package is not installed.
PyObject* NumpyType(DataType dtype);

/// Returns a new array [size] of a numpy.dtype.
Filled<std::byte> NewValues(std::size_t size, PyObject* dtype);

template <typename T>
Filled<T> NewColumn(std::size_t size) {
  static_assert(std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint16_t> ||
                std::is_same_v<T, float>);
  static PyObject* const dtype = NumpyType(std::is_same_v<T, float>           ? "float32"
                                           : std::is_same_v<T, std::uint16_t> ? "uint16"
                                                                              : "int64");
  auto [array, bytes] = NewValues(size, dtype);
  return {std::move(array), {reinterpret_cast<T*>(bytes.data()), size}};
}

/// Return a new array [dim] and [rows, dim], respectively.
Filled<std::byte> NewRow(DataType dtype, std::size_t dim);
Filled<std::byte> NewRows(DataType dtype, std::size_t rows, std::size_t dim);

/// Returns rows with the elements `null` masked (rhizome.MaskedRows); without `null`, the rows.
nb::object WithoutNulls(nb::object rows, std::optional<std::int64_t> null);

/// Returns a NumPy array that owns `values`, without a copy.
template <typename T>
nb::object ToNumpy(std::vector<T> values) {
  auto* owned = new std::vector<T>(std::move(values));
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  // Offsets are never negative, and NumPy code computes with signed numbers.
  using Shown = std::conditional_t<std::is_same_v<T, std::uint64_t>, std::int64_t, T>;
  auto* const data = reinterpret_cast<Shown*>(owned->data());
  return nb::cast(nb::ndarray<nb::numpy, Shown>(data, {owned->size()}, owner));
}

/// A future NumPy array. Its memory is uninitialised and is filled without the GIL.
template <typename T>
class NewArray {
 public:
  explicit NewArray(std::size_t size)
      : values_(static_cast<T*>(ArrayMemory::Take(size * sizeof(T)))), size_(size) {}
  std::span<T> span() { return {values_.get(), size_}; }
  std::size_t size() const { return size_; }

  /// Returns the array, which owns the memory.
  nb::object ToNumpy(std::initializer_list<std::size_t> shape) && {
    T* const values = values_.get();
    const nb::capsule owner(values, &ArrayMemory::GiveBack);
    static_cast<void>(values_.release());
    return nb::cast(nb::ndarray<nb::numpy, T>(values, shape, owner));
  }
  nb::object ToNumpy() && { return std::move(*this).ToNumpy({size_}); }

 private:
  ArrayOf<T> values_;
  std::size_t size_;
};

/// Returns an object of a module. The reference is never released, because modules are destroyed in
/// no particular order at interpreter shutdown.
PyObject* Kept(const char* module, const char* name);

/// Returns the memory of `out` after checking that it is a writable C-contiguous array [rows, dim]
/// of `dtype`. Throws TypeError or ValueError.
std::span<std::byte> WritableRows(nb::handle out, DataType dtype, std::size_t rows,
                                  std::size_t dim);

}  // namespace rhizome::python
