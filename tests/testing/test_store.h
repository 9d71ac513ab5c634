#pragma once

#include <memory>
#include <utility>

#include "index/generation/graph_builder.h"
#include "rhizome/graph.h"
#include "rhizome/store.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// Builds `input` as a new store at `path` and closes it.
inline Status BuildStore(const Path& path, GraphInput input, const BuildOptions& options,
                         const StoreId& id = StoreId{}) {
  RHIZOME_ASSIGN_OR_RETURN(auto store, Store::Create(FileSystem::Posix(), path, id));
  const JobControl control;
  return BuildGeneration(*store, std::move(input), options, control);
}

/// A store opened for reading, and a snapshot of its graph.
struct OpenGraph {
  std::unique_ptr<Store> store;
  std::unique_ptr<GraphSnapshot> graph;
};

inline Result<OpenGraph> OpenStoreGraph(const Path& path) {
  OpenGraph open;
  RHIZOME_ASSIGN_OR_RETURN(open.store, Store::Open(FileSystem::Posix(), path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(open.graph, Graph::Open(std::as_const(*open.store)));
  return open;
}

}  // namespace rhizome::testing
