#pragma once

#include <cstdint>
#include <string>

#include "cli.h"
#include "update_file.h"

namespace rhizome {

/// What `put` and `delete` are told.
struct UpdateFlags {
  std::string store;
  std::string file;
  UpdateFormat format;
  std::uint64_t batch_lines = 0;  ///< 0: all in one batch
  bool vertices = false;
  bool upsert = false;
  bool create_types = false;
  bool no_create_vertices = false;
  bool no_sync = false;
  std::string metrics;
};

/// STORE, F, and the flags that both verbs have.
void AddUpdateFlags(CLI::App& verb, UpdateFlags& flags);

/// Applies the file in batches, each whole or not at all.
Result<Answer> RunUpdate(const UpdateFlags& flags, Session& session);

}  // namespace rhizome
