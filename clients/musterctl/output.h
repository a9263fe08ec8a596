// Output of musterctl: tables for people, JSON and YAML for programs.
#ifndef MUSTER_CLIENTS_MUSTERCTL_OUTPUT_H_
#define MUSTER_CLIENTS_MUSTERCTL_OUTPUT_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "clients/cpp/enum_text.h"
#include "muster/v1/event.pb.h"
#include "muster/v1/gang.pb.h"
#include "muster/v1/node.pb.h"
#include "muster/v1/placement.pb.h"
#include "muster/v1/queue.pb.h"
#include "muster/v1/trace.pb.h"
#include "muster/v1/what_if.pb.h"

namespace muster {

// The text with control characters made visible.
[[nodiscard]] std::string Printable(const std::string& text);
using Rows = std::vector<std::vector<std::string>>;
// Columns as wide as their widest cell, control characters made visible.
void PrintTable(Rows rows);
// "table", "json" or "yaml".
void PrintMessage(const google::protobuf::Message& message, const std::string& output);
// One message per line, for watches.
void PrintLine(const google::protobuf::Message& message);
void PrintGangs(const v1::ListGangsResponse& list);
void PrintGang(const v1::Gang& gang);
void DescribeGang(const v1::Gang& gang);
void PrintNodes(const v1::ListNodesResponse& list);
// One row per resource, queues below their parents.
void PrintQueues(const v1::ListQueuesResponse& list);
void PrintQueue(const v1::Queue& queue);
void DescribeQueue(const v1::Queue& queue);
// Prints the gangs of `all` that are in the queue.
void PrintGangsOf(const v1::Queue& queue, const v1::ListGangsResponse& all);
// Adds explicit zeros for used, reserved and free amounts of every resource of a node, for programs.
void AddZeroAmounts(v1::ListNodesResponse* list);
void PrintSubmission(const v1::Submission& submission);
// One row per submission.
void PrintSubmissions(const v1::ListSubmissionsResponse& list);
// Prints where gang `gang` would be placed, or what prevents it.
void PrintPlan(const std::string& gang, const v1::PlanGangResponse& plan);
// Reports that events are no longer retained. Across a restart their exact number is unknown.
[[nodiscard]] std::string MissedEventsText(int64_t events);
void PrintEvent(const v1::Event& event);
// Prints the timeline, one line per span, with bars.
void PrintTrace(const v1::GetTraceResponse& trace);
void PrintGangEvent(const v1::GangEvent& event);
void PrintNodeEvent(const v1::NodeEvent& event);
void PrintQueueEvent(const v1::QueueEvent& event);
void PrintSubmissionEvent(const v1::SubmissionEvent& event);

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_OUTPUT_H_
