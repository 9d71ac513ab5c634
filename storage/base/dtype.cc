#include <array>

#include "rhizome/types.h"

namespace rhizome {
namespace {

struct TypeFacts {
  DataType type;
  std::size_t bytes;
  std::string_view name;
};

constexpr std::array<TypeFacts, 11> kTypes = {{
    {DataType::kFloat32, 4, "float32"},
    {DataType::kFloat16, 2, "float16"},
    {DataType::kInt64, 8, "int64"},
    {DataType::kInt32, 4, "int32"},
    {DataType::kUint32, 4, "uint32"},
    {DataType::kUint8, 1, "uint8"},
    {DataType::kBool, 1, "bool"},
    {DataType::kInt8, 1, "int8"},
    {DataType::kInt16, 2, "int16"},
    {DataType::kBfloat16, 2, "bfloat16"},
    {DataType::kFloat64, 8, "float64"},
}};

}  // namespace

std::size_t DataTypeBytes(DataType type) {
  for (const TypeFacts& facts : kTypes) {
    if (facts.type == type) return facts.bytes;
  }
  return 0;
}

std::string_view DataTypeName(DataType type) {
  for (const TypeFacts& facts : kTypes) {
    if (facts.type == type) return facts.name;
  }
  return "invalid";
}

std::optional<DataType> ParseDataType(std::string_view name) {
  for (const TypeFacts& facts : kTypes) {
    if (facts.name == name) return facts.type;
  }
  return std::nullopt;
}

}  // namespace rhizome
