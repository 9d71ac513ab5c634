#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rhizome::testing {

/// The files of a catalogue, by name.
using CatalogFiles = std::map<std::string, std::vector<std::byte>>;

/// Changes one of RocksDB's files as somebody does who knows its format: some bytes of a table's
/// block, of a table's footer, or of a record of a log or the MANIFEST, which may also grow or
/// shrink; and puts the checksums right that are over them, that of the seal too. Returns what was
/// changed. `only`: only files that have this in their names.
std::string MutateCatalog(CatalogFiles& files, std::uint64_t seed, const std::string& only = {});

struct MutationPlan {
  std::uint64_t seed = 1;  ///< case i is changed by `seed + i`
  std::uint64_t cases = 1;
  std::string only = {};  ///< as above
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

/// Changes catalogues (one that was closed, with some tables; the same with live logs; one that was
/// just made), and opens each: as a reader and as a writer, which goes on; and one in eight is
/// given to the repair. All of it in child processes, which are this program again: a case that
/// ends one is counted, and printed with its seed.
MutationCounts MutateCatalogs(const MutationPlan& plan);

}  // namespace rhizome::testing
