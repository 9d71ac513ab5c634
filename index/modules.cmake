rhizome_layer(index
  MODULES work topology partition homes input build delta compact ids ingest graph arrays sample check
  HEADERS array_add.h array_scan.h bulk_ids.h change_feed.h convert.h edge_list.h edge_pairs.h edge_times.h edge_values.h external_id.h graph.h graph_builder.h
    graph_lookup.h graph_scan.h graph_service.h graph_types.h home_array.h home_partitioner.h id_span.h ingest.h ingest_options.h ingest_plan.h input_estimate.h
    input_stream.h live_vertices.h nearest.h neighbor_source.h npy.h number.h partition_input.h partition_options.h partitioner.h reorder.h repair_graph.h
    row_source.h row_sources.h sampler.h sampler_options.h staleness.h table_reader.h topology_codec.h
    topology_sections.h verify_store.h write_batch.h
  USES storage
  BATCH 8
  PRIVATE_LIBS TBB::tbb Boost::headers PkgConfig::ZSTD ZLIB::ZLIB fmt::fmt
    nlohmann_json::nlohmann_json Threads::Threads)
foreach(module IN LISTS rhizome_index_modules)
  target_include_directories(${module} SYSTEM PRIVATE ${RANDOM123_INCLUDE} ${FAST_FLOAT_INCLUDE})
endforeach()
