#pragma once

#include <string>
#include <type_traits>

#include "storage/io/posix_place.h"

namespace rhizome {
inline namespace internal {

/// Returns `text` with each occurrence of the quoted path `absolute` replaced by the path as the
/// caller wrote it.
inline std::string NamedAsWritten(std::string text, const Path& absolute, const Path& written) {
  if (absolute == written || absolute.empty()) return text;
  std::string from = "'", to = "'";
  from += absolute.string();
  to += written.string();
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}
inline Status NamedAsWritten(const Status& status, const Path& absolute, const Path& written) {
  return {status.code(), NamedAsWritten(status.message(), absolute, written)};
}

/// Returns run(path made absolute), so that `run` is not affected if the process changes its
/// working directory. Errors name the path as the caller wrote it.
template <typename Run>
std::invoke_result_t<Run, const Path&> WithAbsolute(FileSystem& fs, const Path& path, Run&& run) {
  const Path absolute = AbsolutePath(fs, path);
  auto outcome = run(absolute);
  if constexpr (std::is_same_v<decltype(outcome), Status>) {
    return NamedAsWritten(outcome, absolute, path);
  } else {
    if (outcome) return outcome;
    return Fail(NamedAsWritten(outcome.error(), absolute, path));
  }
}

}  // namespace internal
}  // namespace rhizome
