#include "storage/base/check.h"

#include <gtest/gtest.h>

namespace rhizome {
namespace {

TEST(CheckDeathTest, AViolatedCheckNamesFileLineAndExpression) {
  const int two = 2;
  RHIZOME_CHECK(two == 2);
  EXPECT_DEATH(RHIZOME_CHECK(two == 3), "check_test.cc:[0-9]+: RHIZOME_CHECK failed: two == 3");
}

TEST(CheckDeathTest, AViolatedInvariantStopsWhereInvariantsAreLookedAt) {
  int evaluations = 0;
  RHIZOME_DCHECK(++evaluations == 1);
#if RHIZOME_DCHECK_IS_ON
  EXPECT_EQ(evaluations, 1);
  EXPECT_DEATH(RHIZOME_DCHECK(evaluations == 5),
               "check_test.cc:[0-9]+: RHIZOME_CHECK failed: evaluations == 5");
#else
  RHIZOME_DCHECK(++evaluations == 5);
  EXPECT_EQ(evaluations, 0);
#endif
}

// An enclosing `if` without braces keeps its `else`, whether or not debug checks are enabled.
TEST(CheckTest, IsOneStatement) {
  bool other = false;
  if (other)
    RHIZOME_DCHECK(!other);
  else
    other = true;
  EXPECT_TRUE(other);
}

#ifdef RHIZOME_SANITIZED
static_assert(RHIZOME_DCHECK_IS_ON);
#endif

}  // namespace
}  // namespace rhizome
