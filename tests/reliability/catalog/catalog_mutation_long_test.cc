#include "reliability/catalog/catalog_mutation_testing.h"
#include "rhizome/manifest.h"

namespace rhizome::testing {
namespace {

TEST(CatalogMutationLongTest, AnyFile) { ExpectRefusedOrTheSame(30000, ""); }
TEST(CatalogMutationLongTest, Manifest) { ExpectRefusedOrTheSame(30000, "MANIFEST"); }
TEST(CatalogMutationLongTest, Logs) { ExpectRefusedOrTheSame(30000, ".log"); }

}  // namespace
}  // namespace rhizome::testing
