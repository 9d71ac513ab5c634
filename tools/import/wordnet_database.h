#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/types.h"

namespace rhizome {

/// A pointer to another synset, as in data.*.
struct WordNetLink {
  TypeId type = 0;
  std::uint8_t file = 0;  ///< file of the target: an index into kWordNetFiles
  std::uint32_t offset = 0;
};

/// A synset: one line of data.*.
struct Synset {
  std::uint8_t file = 0;
  std::uint32_t offset = 0;  ///< byte offset, the key of the synset in its file
  std::uint32_t line = 0;
  std::uint8_t label = 0;   ///< lexicographer file
  char letter = 0;          ///< n, v, a, s or r
  std::uint32_t sense = 0;  ///< position in the list of `word` in index.*; 0: not listed there
  std::string word;         ///< the first word, in lower case, without syntactic marker
  std::string gloss;
  std::vector<WordNetLink> links;

  /// Returns the external id, such as "dog.n.01".
  std::string Id() const;
};

/// Parses a line of data.*: `offset lex_filenum ss_type w_cnt word lex_id [word lex_id ...] p_cnt
/// [symbol offset pos source/target ...] [frames] | gloss` (wndb(5WN)); w_cnt is hexadecimal. Does
/// not access any file. Errors: kInvalidArgument, naming the field.
Result<Synset> ParseSynset(std::string_view line, std::uint8_t file);

/// Reads data.* and index.* of `folder`. Returns all synsets with their senses, in the order of the
/// files.
/// Errors: kNotFound; kInvalidArgument, naming file and line; kInterrupted.
Result<std::vector<Synset>> ReadSynsets(FileSystem& fs, const Path& folder,
                                        const JobControl& control);

}  // namespace rhizome
