#include "reliability/catalog/catalog_mutation_testing.h"
#include "rhizome/manifest.h"

namespace rhizome::testing {
namespace {

TEST(CatalogMutationTest, AnyFile) { ExpectRefusedOrTheSame(300, ""); }
TEST(CatalogMutationTest, Manifest) { ExpectRefusedOrTheSame(100, "MANIFEST"); }
TEST(CatalogMutationTest, Logs) { ExpectRefusedOrTheSame(100, ".log"); }

}  // namespace
}  // namespace rhizome::testing
