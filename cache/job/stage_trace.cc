#include "cache/job/stage_trace.h"

#include <fmt/format.h>

#include <iterator>
#include <string>

#include "rhizome/file_system.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {

std::string_view StageName(Stage stage) {
  static constexpr std::array<std::string_view, kStages> kNames = {"sample", "schedule", "switch",
                                                                   "read",   "wait",     "compute"};
  return kNames[static_cast<std::size_t>(stage)];
}

void StageTrace::Add(Stage stage, std::uint64_t number, Clock::time_point start,
                     Clock::time_point end) {
  const auto microseconds = [](Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
  };
  const MutexLock lock(mutex_);
  if (events_.size() == kMaxEvents) return;
  events_.push_back({.stage = stage,
                     .number = number,
                     .start_us = microseconds(start - begin_),
                     .duration_us = microseconds(end - start)});
}

Status StageTrace::Write(const Path& path) const {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  auto out = std::back_inserter(text);
  for (std::size_t s = 0; s < kStages; ++s) {
    fmt::format_to(out,
                   "{}\n{{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": {}, "
                   "\"args\": {{\"name\": \"{}\"}}}}",
                   s == 0 ? "" : ",", s + 1, StageName(static_cast<Stage>(s)));
  }
  {
    const MutexLock lock(mutex_);
    for (const Event& event : events_) {
      fmt::format_to(out,
                     ",\n{{\"name\": \"{} {}\", \"cat\": \"{}\", \"ph\": \"X\", \"pid\": 1, "
                     "\"tid\": {}, \"ts\": {:.1f}, \"dur\": {:.1f}}}",
                     StageName(event.stage), event.number, StageName(event.stage),
                     static_cast<std::size_t>(event.stage) + 1, event.start_us, event.duration_us);
    }
  }
  text += "\n]}\n";
  RHIZOME_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  RHIZOME_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(text))));
  return file.Commit();
}

}  // namespace internal
}  // namespace rhizome
