#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "rhizome/types.h"
#include "testing/sanitizer.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using Value = Variant<std::int64_t, double, std::string>;

TEST(VariantTest, IsUsedAsAStandardOne) {
  Value value = "text";
  EXPECT_TRUE(std::holds_alternative<std::string>(value));
  const Value copy = value;
  EXPECT_EQ(copy, value);
  value = std::int64_t{3};
  EXPECT_NE(copy, value);
  EXPECT_LT(value, copy);
  EXPECT_EQ(std::get<std::int64_t>(value), 3);
  value = copy;
  EXPECT_EQ(std::visit([](const auto& held) { return sizeof(held); }, value), sizeof(std::string));
  std::unordered_map<Value, int> numbers = {{copy, 1}, {2.5, 2}};
  EXPECT_EQ(numbers.at("text"), 1);
}

/// Copies a string of 64 MiB when memory for a second one is not available. Ends the process.
[[noreturn]] void CopyWithoutMemory() {
  const Value large = std::string(std::size_t{64} << 20, 'x');
  const rlimit little{.rlim_cur = std::size_t{96} << 20, .rlim_max = std::size_t{96} << 20};
  if (::setrlimit(RLIMIT_AS, &little) != 0) std::_Exit(2);
  int refused = 0;
  const auto refuse = [&](const auto& copy) {
    try {
      copy();
    } catch (const std::bad_alloc&) {
      ++refused;
    }
  };
  Value number = std::int64_t{7};
  Value text = "text";
  std::vector<Value> values;
  refuse([&] { const Value copy(large); });
  refuse([&] { number = large; });
  refuse([&] { text = large; });
  refuse([&] { values.push_back(large); });
  const bool kept = number == Value(std::int64_t{7}) && text == Value("text") && values.empty();
  std::_Exit(refused == 4 && kept ? 0 : 1);
}

TEST(VariantTest, ACopyThatTakesMoreMemoryThanThereIsThrows) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer needs more addresses";
  EXPECT_EXIT(CopyWithoutMemory(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace rhizome
