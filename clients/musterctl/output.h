// What musterctl prints: tables for people, JSON and YAML for programs.
#ifndef MUSTER_CLIENTS_MUSTERCTL_OUTPUT_H_
#define MUSTER_CLIENTS_MUSTERCTL_OUTPUT_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "proto/muster/v1/decisions.pb.h"
#include "proto/muster/v1/muster.pb.h"

namespace muster {

// The text with control characters made visible.
[[nodiscard]] std::string Printable(const std::string& text);
using Rows = std::vector<std::vector<std::string>>;
// Columns as wide as their widest cell, control characters made visible.
void PrintTable(Rows rows);
// "table", "json" or "yaml".
void PrintMessage(const google::protobuf::Message& message, const std::string& output);
// One message a line, for watches.
void PrintLine(const google::protobuf::Message& message);
void PrintGangs(const v1::ListGangsResponse& list);
void PrintGang(const v1::Gang& gang);
void DescribeGang(const v1::Gang& gang);
void PrintNodes(const v1::ListNodesResponse& list);
// A row for each resource, queues below their parents.
void PrintQueues(const v1::ListQueuesResponse& list);
void PrintQueue(const v1::Queue& queue);
void DescribeQueue(const v1::Queue& queue);
// Those of `all` that are in the queue.
void PrintGangsOf(const v1::Queue& queue, const v1::ListGangsResponse& all);
// Of every resource that a node offers, also that none of it is used, reserved or free: for programs.
void TellZeros(v1::ListNodesResponse* list);
void PrintSubmission(const v1::Submission& submission);
// Where the gang of that name would go, or what stops it.
void PrintPlan(const std::string& gang, const v1::PlanGangResponse& plan);
// That events are not kept any more. Over a restart nobody knows how many there were.
[[nodiscard]] std::string Missed(int64_t events);
void PrintEvent(const v1::Event& event);
// What happened when, a line each, with bars.
void PrintTrace(const v1::GetTraceResponse& trace);
void PrintGangEvent(const v1::GangEvent& event);
void PrintNodeEvent(const v1::NodeEvent& event);

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_OUTPUT_H_
