#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rhizome::testing {

/// The files of a catalogue, by name.
using CatalogFiles = std::map<std::string, std::vector<std::byte>>;

/// Changes one of RocksDB's files as an attacker who knows the format would: some bytes of a
/// table's block or footer, or of a record of a log or the MANIFEST, which may also grow or shrink.
/// Checksums are corrected, including the seal. Returns a description of the change. `only`: change
/// only files with this text in their names.
std::string MutateCatalog(CatalogFiles& files, std::uint64_t seed, const std::string& only = {});

struct MutationPlan {
  std::uint64_t seed = 1;  ///< case i uses `seed + i`
  std::uint64_t cases = 1;
  std::string only = {};  ///< as in MutateCatalog
  bool stop_at_first = false;
};

struct MutationCounts {
  std::uint64_t cases = 0;
  std::uint64_t refused = 0;
  std::uint64_t same = 0;     ///< the answers of the sound catalogue
  std::uint64_t silent = 0;   ///< other answers, without an error
  std::uint64_t crashed = 0;  ///< the process died
  std::uint64_t hung = 0;     ///< no answer within a minute
};

/// Changes catalogues (one that was closed, with some tables; the same with live logs; a new one)
/// and opens each as a reader and as a writer, which continues. One in eight is repaired instead.
/// Everything runs in child processes, which are this program again. A case that ends its child is
/// counted and printed with its seed.
MutationCounts MutateCatalogs(const MutationPlan& plan);

}  // namespace rhizome::testing
