// usage: mutate_catalog FOLDER SEED
// Changes a file of a catalogue and corrects its checksums (catalog_mutation.h).
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "reliability/catalog/catalog_mutation.h"

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  namespace fs = std::filesystem;
  const fs::path folder = argv[1];
  rhizome::testing::CatalogFiles files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    auto& file = files[entry.path().filename().string()];
    for (const char byte : bytes) file.push_back(static_cast<std::byte>(byte));
  }
  const std::string what =
      rhizome::testing::MutateCatalog(files, std::strtoull(argv[2], nullptr, 10));
  for (const auto& [name, bytes] : files) {
    std::ofstream out(folder / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    if (!out) return 2;
  }
  std::printf("%s\n", what.c_str());
  return 0;
}
