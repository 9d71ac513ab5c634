#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "rhizome/file_system.h"
#include "rhizome/ingest.h"

namespace rhizome {
inline namespace internal {

/// Returns why `text` is not an integer id, as part of a sentence: "it begins with 0".
std::string_view WhyNoInteger(std::string_view text);

/// Checks the types of vertices whose ids become TYPE:ID (IngestOptions::end_types). Types may
/// contain ':', but each id must have one reading: no type may begin with another one and ':'.
/// Errors: kInvalidArgument, naming the types.
Status CheckTypedIds(std::span<const std::string> types);

/// Collects the ids of the sampled lines: integers, texts, and numbers that are written in two
/// ways. Threads: one at a time.
class IdCensus {
 public:
  void Add(std::string_view id, const Path& path, std::uint64_t line);
  void AddIntegers() { integers_ = true; }  ///< ids of a binary file

  /// Returns what was found. The ids are texts if any is, or if `requested`.
  IdPlan Plan(bool requested) &&;

 private:
  struct Spelling {
    std::string text;
    std::string place;
    bool told = false;
  };
  IdPlan plan_;
  bool integers_ = false;
  std::map<std::string, Spelling, std::less<>> numbers_;  // by the number, written plainly
};

}  // namespace internal
}  // namespace rhizome
