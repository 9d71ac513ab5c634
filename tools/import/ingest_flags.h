#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rhizome/ingest.h"
#include "tools/cli/cli.h"
#include "tools/import/layout_flags.h"

namespace rhizome {

/// Flags for the input and the layout of a new store, shared by `ingest` and `plan ingest`.
struct IngestFlags {
  std::string store;
  std::vector<std::string> inputs;  ///< files, or one folder, whose kind is found
  std::vector<std::string> edges;
  std::string nodes;
  std::vector<std::string> arrays;
  std::vector<std::string> edge_arrays;
  std::optional<DataType> dtype;
  IngestOptions options;
  LayoutFlags layout;

  /// Converts the flags to options. Errors: kInvalidArgument, a file of --array or --edge-array
  /// cannot be read.
  Result<IngestOptions> ToOptions() const;

  /// Sets the options of the new store's layout, of memory and of scratch files.
  void SetLayout(IngestOptions& result) const;
};

/// Sets name and vertex type from "NAME" or "TYPE:NAME". Errors: kInvalidArgument.
Status SetArrayName(const std::string& given, ArrayFile& array);

/// Parses "NAME=F", "NAME=F:coo:DIM" or "NAME=F:DIM", the value of --array. NAME is as for
/// SetArrayName.
Result<ArrayFile> ParseArrayFlag(const std::string& given, std::optional<DataType> dtype);

/// Adds --dtype.
void AddDtypeFlag(CLI::App& verb, std::optional<DataType>& dtype);

/// Adds all flags of IngestFlags. `flags` must outlive `verb`.
void AddIngestFlags(CLI::App& verb, IngestFlags& flags);

}  // namespace rhizome
