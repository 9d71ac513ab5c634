#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// A std::variant of numbers and strings whose copies fail with std::bad_alloc when memory is
/// short. The std::variant of libstdc++ 12 assumes that such a variant always holds a value: if
/// copying a string throws, it destroys a copy that was never created, and the process ends. Here
/// the value is copied first and then moved in. Works wherever a std::variant does: std::get,
/// std::visit, ==.
template <typename... Types>
class Variant : public std::variant<Types...> {
  using Base = std::variant<Types...>;
  static_assert(std::is_nothrow_move_constructible_v<Base>);

 public:
  using Base::Base;
  using Base::operator=;
  Variant() = default;
  Variant(Variant&&) noexcept = default;
  Variant& operator=(Variant&&) noexcept = default;
  Variant(const Variant& other) : Base(CopyOf(other)) {}
  Variant& operator=(const Variant& other) { return *this = Variant(other); }
  ~Variant() = default;

 private:
  static Base CopyOf(const Base& other) {
    return std::visit(
        [](const auto& value) {
          return Base(std::in_place_type<std::decay_t<decltype(value)>>, value);
        },
        other);
  }
};

}  // namespace rhizome

template <typename... Types>
struct std::hash<rhizome::Variant<Types...>> : std::hash<std::variant<Types...>> {};
