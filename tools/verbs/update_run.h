#pragma once

#include <cstdint>
#include <string>

#include "tools/cli/cli.h"
#include "tools/verbs/update_file.h"

namespace rhizome {

/// Flags of `put` and `delete`.
struct UpdateFlags {
  std::string store;
  std::string file;
  UpdateFormat format;
  std::uint64_t batch_lines = 0;  ///< 0: the whole file is one batch
  bool vertices = false;
  bool upsert = false;
  bool create_types = false;
  bool no_create_vertices = false;
  bool no_sync = false;
  bool create = false;  ///< create the store if it is absent
  std::string schema;   ///< its schema (ReadSchema); empty: the one that the first batch fits
  double wait = 0;
  std::string metrics;
};

/// Adds STORE, F, and the flags shared by both verbs.
void AddUpdateFlags(CLI::App& verb, UpdateFlags& flags);

/// Applies the file in batches. Each batch is atomic.
Result<Answer> RunUpdate(const UpdateFlags& flags, Session& session);

}  // namespace rhizome
