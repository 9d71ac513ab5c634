#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "rhizome/file_system.h"
#include "rhizome/store_options.h"
#include "rhizome/types.h"
#include "storage/base/logger.h"
#include "storage/base/process.h"
#include "storage/base/quietly.h"
#include "storage/io/metered_file_system.h"
#include "storage/io/posix_place.h"
#include "storage/store/reserve.h"

namespace rhizome {
inline namespace internal {

/// State shared by all handles and snapshots of one open store: options, log, metrics, pin counts.
/// The last handle destroys it.
/// Threads: any.
class StoreContext {
 public:
  /// `store` must be absolute (AbsolutePath).
  StoreContext(FileSystem& base, const Path& store, const StoreOptions& options)
      : options_(WithAbsoluteScratch(base, options)),
        enclosure_(base.Enclose(store)),
        scratch_enclosure_(options_.scratch.empty() ? nullptr : base.Enclose(options_.scratch)),
        logger_(std::make_shared<Logger>(options.log, options.log_level)),
        metered_(options.metrics != nullptr ? MakeMeteredFileSystem(base, *options.metrics)
                                            : nullptr),
        base_(base) {
    if (options_.frees_space) reserve_.emplace(base_, store);
  }

  // Removes the store's scratch folder in an external location (--scratch DIR) if it contains no
  // job's folder.
  ~StoreContext() {
    Quietly([&] {
      const MutexLock lock(mutex_);
      if (!scratch_.empty()) static_cast<void>(base_.RemoveDirectory(scratch_).ok());
    });
  }

  /// Returns the external folder for the scratch files of store `id`; empty: use the store's own.
  Path ScratchOf(const StoreId& id) RHIZOME_EXCLUDES(mutex_) {
    if (options_.scratch.empty()) return {};
    const MutexLock lock(mutex_);
    return scratch_ = options_.scratch / id.ToString();
  }

  /// Holds the store's folder (HeldFolder). Must be called while only one thread uses this object.
  Status HoldFolder() { return internal::HoldFolder(enclosure_); }

  /// Checks that the store's path still names its folder. Errors: kIoError.
  Status CheckFolder() const { return internal::CheckFolder(enclosure_); }

  const StoreOptions& options() const { return options_; }
  const std::shared_ptr<Logger>& logger() const { return logger_; }
  Metrics* metrics() const { return options_.metrics.get(); }
  FileSystem& fs() const { return metered_ != nullptr ? *metered_ : base_; }

  /// Changes the reference count of a generation's PIN by `change`, and the metric with it.
  void CountPin(std::uint64_t generation, int change) RHIZOME_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if ((pins_[generation] += change) == 0) pins_.erase(generation);
    if (metrics() != nullptr)
      metrics()->Set(Gauge::kPinnedGenerations, static_cast<std::int64_t>(pins_.size()));
  }

 private:
  static StoreOptions WithAbsoluteScratch(FileSystem& base, StoreOptions options) {
    options.scratch = AbsolutePath(base, options.scratch);
    return options;
  }

  const StoreOptions options_;
  const std::shared_ptr<FolderEnclosure> enclosure_;
  const std::shared_ptr<FolderEnclosure> scratch_enclosure_;
  const std::shared_ptr<Logger> logger_;
  const std::unique_ptr<FileSystem> metered_;
  FileSystem& base_;
  std::optional<ReserveInUse> reserve_;
  ForkMutex mutex_;
  std::map<std::uint64_t, int> pins_ RHIZOME_GUARDED_BY(mutex_);
  Path scratch_ RHIZOME_GUARDED_BY(mutex_);  ///< set by the first ScratchOf
};

/// A shared lock on a generation's PIN that is counted in the context. During its lifetime, no
/// process removes the generation.
class CountedPin final : public FileLock {
 public:
  CountedPin(std::unique_ptr<FileLock> lock, std::shared_ptr<StoreContext> context,
             std::uint64_t generation)
      : lock_(std::move(lock)), context_(std::move(context)), generation_(generation) {
    context_->CountPin(generation_, 1);
  }
  ~CountedPin() override { context_->CountPin(generation_, -1); }

 private:
  const std::unique_ptr<FileLock> lock_;
  const std::shared_ptr<StoreContext> context_;
  const std::uint64_t generation_;
};

}  // namespace internal
}  // namespace rhizome
