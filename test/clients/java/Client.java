import static java.util.stream.Collectors.toList;

import io.camunda.client.CamundaClient;
import io.camunda.client.api.command.ClientStatusException;
import io.camunda.client.api.command.CreateProcessInstanceCommandStep1.CreateProcessInstanceCommandStep3;
import io.camunda.client.api.command.DeployResourceCommandStep1.DeployResourceCommandStep2;
import io.camunda.client.api.command.ProblemException;
import io.camunda.client.api.response.ActivatedJob;
import io.camunda.client.api.response.Process;
import io.camunda.client.api.response.ProcessInstanceEvent;
import io.camunda.client.api.search.enums.ElementInstanceState;
import io.camunda.client.api.search.enums.ElementInstanceType;
import io.camunda.client.api.search.enums.IncidentErrorType;
import io.camunda.client.api.search.enums.IncidentState;
import io.camunda.client.api.search.enums.JobState;
import io.camunda.client.api.search.enums.ProcessInstanceState;
import io.camunda.client.api.search.enums.UserTaskState;
import io.camunda.client.api.search.response.Incident;
import io.camunda.client.api.search.response.ProcessInstance;
import io.camunda.client.api.search.response.UserTask;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.Callable;

/** Plays the cases of TestClients with the Java client and prints one JSON line per case. */
public final class Client {
  interface Play {
    void run() throws Exception;
  }

  static final String REST = need("ENGINE_REST");
  static final Path MODELS = Path.of(need("ENGINE_MODELS"));
  static final boolean PREFER_REST = "rest".equals(need("ENGINE_API"));
  static final HttpClient HTTP = HttpClient.newHttpClient();
  static int orders;
  static CamundaClient client;

  public static void main(String[] args) throws Exception {
    client = CamundaClient.newClientBuilder().applyEnvironmentVariableOverrides(false)
        .grpcAddress(URI.create("http://" + need("ENGINE_GRPC"))).restAddress(URI.create("http://" + REST))
        .preferRestOverGrpc(PREFER_REST).build();
    for (var c : cases().entrySet()) {
      long started = System.nanoTime();
      String error = "";
      try {
        c.getValue().run();
      } catch (Throwable e) {
        StringWriter trace = new StringWriter();
        e.printStackTrace(new PrintWriter(trace));
        error = trace.toString();
      }
      String more = error.isEmpty() ? "" : ",\"error\":" + quote(error.substring(0, Math.min(3000, error.length())));
      System.out.printf("{\"case\":%s%s,\"ms\":%d}%n", quote(c.getKey()), more, (System.nanoTime() - started) / 1_000_000);
    }
    client.close();
    System.exit(0);
  }

  static Map<String, Play> cases() {
    Map<String, Play> cases = new LinkedHashMap<>();
    cases.put("topology", () -> {
      var t = client.newTopologyRequest().send().join();
      check(t.getGatewayVersion().startsWith("8."), t.getGatewayVersion());
      equal(t.getBrokers().size(), 1);
      equal(t.getPartitionsCount(), 1);
      equal(t.getBrokers().get(0).getPartitions().get(0).isLeader(), true);
    });
    cases.put("deploy", () -> {
      List<Process> got = deploy("work", "batch", "risky", "wait", "person", "alarm");
      equal(got.stream().map(Process::getBpmnProcessId).sorted().collect(toList()), List.of("alarm-raised", "batch", "person", "risky", "wait", "work"));
      for (Process p : got) {
        equal(p.getVersion(), 1);
        check(p.getProcessDefinitionKey() > 1L << 51, "key " + p.getProcessDefinitionKey());
      }
    });
    cases.put("deploy the same again", () -> {
      Process first = deploy("work").get(0);
      Process second = deploy("work").get(0);
      equal(second.getProcessDefinitionKey(), first.getProcessDefinitionKey());
      equal(second.getVersion(), 1);
    });
    cases.put("deploy a broken model", () -> refuses("INVALID_ARGUMENT", () -> deploy("broken")));
    cases.put("create, activate, complete", () -> {
      Map<String, Object> variables = Map.of("n", 1, "deep", Map.of("list", Arrays.asList(1, "zwei", null)));
      ProcessInstanceEvent i = create("work", variables);
      equal(i.getVersion(), 1);
      ActivatedJob job = one("work");
      equal(job.getProcessInstanceKey(), i.getProcessInstanceKey());
      equal(job.getElementId(), "do");
      equal(job.getBpmnProcessId(), "work");
      equal(job.getRetries(), 3);
      equal(job.getCustomHeaders(), Map.of("region", "eu"));
      equal(job.getVariablesAsMap(), variables);
      check(job.getDeadline() > System.currentTimeMillis() + 30_000, "deadline " + job.getDeadline());
      complete(job.getKey(), Map.of("done", true));
      equal(state(i), ProcessInstanceState.COMPLETED);
      equal(variable(i, "done"), "true");
      refuses("NOT_FOUND", () -> complete(job.getKey(), Map.of()));
    });
    cases.put("create an unknown process", () -> refuses("NOT_FOUND", () -> create("nowhere", Map.of())));
    cases.put("fetch some variables", () -> {
      create("work", Map.of("a", 1, "b", 2));
      ActivatedJob job = client.newActivateJobsCommand().jobType("work").maxJobsToActivate(1).timeout(Duration.ofMinutes(1))
          .workerName("cases").fetchVariables("b", "unknown").requestTimeout(Duration.ofSeconds(5)).send().join().getJobs().get(0);
      equal(job.getVariablesAsMap(), Map.of("b", 2));
      complete(job.getKey(), Map.of());
    });
    cases.put("create and wait for the result", () -> {
      var result = started("work", Map.of("n", 7)).withResult().requestTimeout(Duration.ofSeconds(20)).send();
      complete(one("work").getKey(), Map.of("answer", 42));
      Map<String, Object> variables = result.join().getVariablesAsMap();
      equal(variables.get("n"), 7);
      equal(variables.get("answer"), 42);
    });
    cases.put("an empty poll ends in time", () -> {
      long started = System.nanoTime();
      equal(activate("nobody", Duration.ofMillis(300)), List.of());
      long ms = (System.nanoTime() - started) / 1_000_000;
      check(ms >= 250 && ms < 10_000, ms + " ms");
    });
    cases.put("a long poll gets the next job", () -> {
      var poll = client.newActivateJobsCommand().jobType("work").maxJobsToActivate(1).timeout(Duration.ofMinutes(1))
          .requestTimeout(Duration.ofSeconds(20)).send();
      ProcessInstanceEvent i = create("work", Map.of());
      ActivatedJob job = poll.join().getJobs().get(0);
      equal(job.getProcessInstanceKey(), i.getProcessInstanceKey());
      complete(job.getKey(), Map.of());
    });
    cases.put("fail with retries and back-off", () -> {
      ProcessInstanceEvent i = create("risky", Map.of());
      ActivatedJob job = one("risk");
      client.newFailCommand(job).retries(2).retryBackoff(Duration.ofMinutes(10)).errorMessage("not now").send().join();
      none("risk");
      advance(600_001);
      ActivatedJob again = one("risk");
      equal(again.getKey(), job.getKey());
      equal(again.getRetries(), 2);
      complete(again.getKey(), Map.of());
      equal(state(i), ProcessInstanceState.COMPLETED);
    });
    cases.put("a job times out", () -> {
      create("work", Map.of());
      ActivatedJob job = one("work");
      none("work");
      advance(61_001);
      ActivatedJob again = one("work");
      equal(again.getKey(), job.getKey());
      equal(again.getRetries(), 3);
      complete(again.getKey(), Map.of());
    });
    cases.put("extend the time-out", () -> {
      create("work", Map.of());
      ActivatedJob job = one("work");
      client.newUpdateTimeoutCommand(job).timeout(Duration.ofHours(1)).send().join();
      advance(600_000);
      none("work");
      complete(job.getKey(), Map.of());
    });
    cases.put("throw an error that is caught", () -> {
      ProcessInstanceEvent i = create("risky", Map.of());
      client.newThrowErrorCommand(one("risk")).errorCode("REFUSED").errorMessage("sold out").variables(Map.of("why", "full")).send().join();
      equal(state(i), ProcessInstanceState.COMPLETED);
      equal(client.newElementInstanceSearchRequest().filter(f -> f.processInstanceKey(i.getProcessInstanceKey()).elementId("refusedEnd"))
          .send().join().items().size(), 1);
      equal(variable(i, "refusal"), "\"full\"");
    });
    cases.put("throw an error nobody catches", () -> {
      ProcessInstanceEvent i = create("risky", Map.of());
      ActivatedJob job = one("risk");
      client.newThrowErrorCommand(job).errorCode("OTHER").errorMessage("what now").send().join();
      Incident incident = incidents(i).get(0);
      equal(incident.getErrorType(), IncidentErrorType.UNHANDLED_ERROR_EVENT);
      check(incident.getErrorMessage().contains("'OTHER'"), incident.getErrorMessage());
      equal(incident.getElementId(), "risk");
      none("risk");
      client.newResolveIncidentCommand(incident.getIncidentKey()).send().join();
      ActivatedJob again = one("risk");
      equal(again.getKey(), job.getKey());
      complete(again.getKey(), Map.of());
      equal(state(i), ProcessInstanceState.COMPLETED);
    });
    cases.put("an incident, resolved", () -> {
      ProcessInstanceEvent i = create("risky", Map.of());
      ActivatedJob job = failed("the supplier is down");
      Incident incident = incidents(i).get(0);
      equal(incident.getErrorType(), IncidentErrorType.JOB_NO_RETRIES);
      equal(incident.getErrorMessage(), "the supplier is down");
      equal(incident.getJobKey(), job.getKey());
      refuses("INVALID_STATE", () -> client.newResolveIncidentCommand(incident.getIncidentKey()).send().join());
      client.newUpdateRetriesCommand(job).retries(1).send().join();
      client.newResolveIncidentCommand(incident.getIncidentKey()).send().join();
      equal(incidents(i), List.of());
      ActivatedJob again = one("risk");
      equal(again.getRetries(), 1);
      complete(again.getKey(), Map.of());
      equal(state(i), ProcessInstanceState.COMPLETED);
      refuses("NOT_FOUND", () -> client.newResolveIncidentCommand(incident.getIncidentKey()).send().join());
    });
    cases.put("a message, then a timer", () -> {
      String order = "order-" + ++orders;
      ProcessInstanceEvent i = create("wait", Map.of("order", order));
      publish(order, order + "-1", Duration.ofMinutes(1), Map.of("amount", 12.5));
      until("the message has arrived", () -> "12.5".equals(variable(i, "amount")));
      refuses(PREFER_REST ? "INVALID_STATE" : "ALREADY_EXISTS", () -> publish(order, order + "-1", Duration.ofMinutes(1), Map.of()));
      advance(3_599_000);
      equal(state(i), ProcessInstanceState.ACTIVE);
      advance(60_000);
      equal(state(i), ProcessInstanceState.COMPLETED);
    });
    cases.put("a message that waits", () -> {
      String order = "order-" + ++orders;
      publish(order, "", Duration.ofHours(1), Map.of("early", true));
      ProcessInstanceEvent i = create("wait", Map.of("order", order));
      until("the message has arrived", () -> "true".equals(variable(i, "early")));
      cancel(i);
    });
    cases.put("correlate a message", () -> {
      String order = "order-" + ++orders;
      refuses("NOT_FOUND", () -> client.newCorrelateMessageCommand().messageName("paid").correlationKey(order).send().join());
      ProcessInstanceEvent i = create("wait", Map.of("order", order));
      var r = client.newCorrelateMessageCommand().messageName("paid").correlationKey(order).variables(Map.of("amount", 3)).send().join();
      equal(r.getProcessInstanceKey(), i.getProcessInstanceKey());
      equal(variable(i, "amount"), "3");
      cancel(i);
    });
    cases.put("a signal starts a process", () -> {
      client.newBroadcastSignalCommand().signalName("alarm").variables(Map.of("level", "high")).send().join();
      ActivatedJob job = one("react");
      equal(job.getBpmnProcessId(), "alarm-raised");
      equal(job.getVariablesAsMap(), Map.of("level", "high"));
      complete(job.getKey(), Map.of());
    });
    cases.put("set variables", () -> {
      ProcessInstanceEvent i = create("work", Map.of("n", 1));
      client.newSetVariablesCommand(i.getProcessInstanceKey()).variables(Map.of("n", 2, "m", List.of(true))).local(false).send().join();
      equal(variable(i, "n"), "2");
      equal(variable(i, "m"), "[true]");
      cancel(i);
    });
    cases.put("cancel", () -> {
      ProcessInstanceEvent i = create("work", Map.of());
      ActivatedJob job = one("work");
      cancel(i);
      equal(state(i), ProcessInstanceState.TERMINATED);
      refuses("NOT_FOUND", () -> complete(job.getKey(), Map.of()));
      refuses("NOT_FOUND", () -> cancel(i));
    });
    cases.put("a worker", () -> work(false));
    cases.put("a streaming worker", () -> work(true));
    cases.put("a user task", () -> {
      ProcessInstanceEvent i = create("person", Map.of("price", 5));
      UserTask task = client.newUserTaskSearchRequest().filter(f -> f.processInstanceKey(i.getProcessInstanceKey()).state(UserTaskState.CREATED))
          .send().join().items().get(0);
      equal(task.getElementId(), "approve");
      equal(task.getName(), "Approve");
      equal(task.getCandidateGroups(), List.of("desk"));
      client.newAssignUserTaskCommand(task.getUserTaskKey()).assignee("ada").send().join();
      UserTask mine = client.newUserTaskSearchRequest().filter(f -> f.assignee("ada")).send().join().items().get(0);
      equal(mine.getUserTaskKey(), task.getUserTaskKey());
      client.newCompleteUserTaskCommand(task.getUserTaskKey()).variables(Map.of("approved", true)).send().join();
      equal(state(i), ProcessInstanceState.COMPLETED);
      equal(variable(i, "approved"), "true");
      equal(client.newUserTaskGetRequest(task.getUserTaskKey()).send().join().getState(), UserTaskState.COMPLETED);
      refuses("NOT_FOUND", () -> client.newCompleteUserTaskCommand(task.getUserTaskKey()).send().join());
    });
    cases.put("search with filters, order and pages", () -> {
      List<ProcessInstanceEvent> mine = new ArrayList<>();
      for (int n = 0; n < 7; n++) mine.add(0, create("risky", Map.of("n", n)));
      List<Long> want = mine.stream().map(ProcessInstanceEvent::getProcessInstanceKey).collect(toList());
      List<Long> seen = new ArrayList<>();
      String after = null;
      while (seen.size() < 7) {
        String cursor = after;
        var r = client.newProcessInstanceSearchRequest().filter(f -> f.processDefinitionId("risky").state(ProcessInstanceState.ACTIVE))
            .sort(s -> s.processInstanceKey().desc())
            .page(p -> {
              p.limit(3);
              if (cursor != null) p.after(cursor);
            }).send().join();
        equal(r.page().totalItems(), 7L);
        check(!r.items().isEmpty() && r.items().size() <= 3, r.items().size() + " items");
        seen.addAll(keys(r.items()));
        after = r.page().endCursor();
      }
      equal(seen, want);
      var some = client.newProcessInstanceSearchRequest().filter(f -> f.processInstanceKey(k -> k.in(want.get(2), want.get(4))))
          .sort(s -> s.processInstanceKey().desc()).send().join();
      equal(keys(some.items()), List.of(want.get(2), want.get(4)));
      var like = client.newProcessInstanceSearchRequest().filter(f -> f.processDefinitionId(d -> d.like("ris*")).state(ProcessInstanceState.ACTIVE)).send().join();
      equal(like.items().size(), 7);
      equal(client.newProcessInstanceSearchRequest().filter(f -> f.processDefinitionId("nothing")).send().join().items().size(), 0);
      for (ProcessInstanceEvent i : mine) cancel(i);
    });
    cases.put("search incidents and get one", () -> {
      ProcessInstanceEvent i = create("risky", Map.of());
      ActivatedJob job = failed("no luck");
      var found = client.newIncidentSearchRequest().filter(f -> f.processInstanceKey(i.getProcessInstanceKey()).state(IncidentState.ACTIVE)
          .errorType(IncidentErrorType.JOB_NO_RETRIES)).send().join().items();
      equal(found.size(), 1);
      Incident incident = client.newIncidentGetRequest(found.get(0).getIncidentKey()).send().join();
      equal(incident.getErrorMessage(), "no luck");
      equal(incident.getJobKey(), job.getKey());
      equal(incident.getElementInstanceKey(), job.getElementInstanceKey());
      equal(client.newIncidentsByProcessInstanceSearchRequest(i.getProcessInstanceKey()).send().join().items().size(), 1);
      cancel(i);
      equal(incidents(i), List.of());
    });
    cases.put("search jobs", () -> {
      ProcessInstanceEvent i = create("risky", Map.of());
      failed("why");
      var found = client.newJobSearchRequest().filter(f -> f.processInstanceKey(i.getProcessInstanceKey()).state(JobState.FAILED).type("risk")).send().join().items();
      equal(found.size(), 1);
      equal(found.get(0).getErrorMessage(), "why");
      equal(found.get(0).getRetries(), 0);
      cancel(i);
    });
    cases.put("search variables and elements", () -> {
      ProcessInstanceEvent i = create("work", Map.of("name", "Ada", "n", 3));
      equal(variable(i, "name"), "\"Ada\"");
      var elements = client.newElementInstanceSearchRequest().filter(f -> f.processInstanceKey(i.getProcessInstanceKey()).elementId("do")).send().join().items();
      equal(elements.size(), 1);
      equal(elements.get(0).getState(), ElementInstanceState.ACTIVE);
      equal(elements.get(0).getType(), ElementInstanceType.SERVICE_TASK);
      equal(client.newElementInstanceGetRequest(elements.get(0).getElementInstanceKey()).send().join().getProcessInstanceKey(), i.getProcessInstanceKey());
      cancel(i);
    });
    cases.put("search definitions and read the XML", () -> {
      var found = client.newProcessDefinitionSearchRequest().filter(f -> f.processDefinitionId("work")).send().join().items();
      equal(found.size(), 1);
      equal(found.get(0).getName(), "One task");
      String xml = client.newProcessDefinitionGetXmlRequest(found.get(0).getProcessDefinitionKey()).send().join();
      check(xml.contains("<serviceTask id=\"do\""), xml);
    });
    cases.put("delete a definition", () -> {
      client.newDeleteResourceCommand(deploy("alarm").get(0).getProcessDefinitionKey()).send().join();
      refuses("NOT_FOUND", () -> create("alarm-raised", Map.of()));
    });
    return cases;
  }

  static List<Process> deploy(String... models) {
    DeployResourceCommandStep2 command = null;
    for (String m : models) {
      String file = MODELS.resolve(m + ".bpmn").toString();
      command = command == null ? client.newDeployResourceCommand().addResourceFile(file) : command.addResourceFile(file);
    }
    return command.send().join().getProcesses();
  }

  static CreateProcessInstanceCommandStep3 started(String id, Map<String, Object> variables) {
    return client.newCreateInstanceCommand().bpmnProcessId(id).latestVersion().variables(variables);
  }

  static ProcessInstanceEvent create(String id, Map<String, Object> variables) {
    return started(id, variables).send().join();
  }

  static List<ActivatedJob> activate(String type, Duration wait) {
    return client.newActivateJobsCommand().jobType(type).maxJobsToActivate(1).timeout(Duration.ofMinutes(1)).workerName("cases").requestTimeout(wait).send().join().getJobs();
  }

  static ActivatedJob one(String type) {
    List<ActivatedJob> jobs = activate(type, Duration.ofSeconds(5));
    equal(jobs.size(), 1);
    return jobs.get(0);
  }

  static void none(String type) {
    equal(activate(type, Duration.ofMillis(100)).size(), 0);
  }

  static Void complete(long key, Map<String, Object> variables) {
    client.newCompleteCommand(key).variables(variables).send().join();
    return null;
  }

  static ActivatedJob failed(String message) {
    ActivatedJob job = one("risk");
    client.newFailCommand(job).retries(0).errorMessage(message).send().join();
    return job;
  }

  static Void publish(String key, String id, Duration ttl, Map<String, Object> variables) {
    client.newPublishMessageCommand().messageName("paid").correlationKey(key).messageId(id).timeToLive(ttl).variables(variables).send().join();
    return null;
  }

  static Void cancel(ProcessInstanceEvent i) {
    client.newCancelInstanceCommand(i.getProcessInstanceKey()).send().join();
    return null;
  }

  static void work(boolean stream) throws Exception {
    String kind = stream ? "streamed" : "polled"; // a closed worker may leave a poll behind
    List<ProcessInstanceEvent> instances = new ArrayList<>();
    instances.add(create("batch", Map.of("n", 0, "kind", kind)));
    var done = new TreeMap<Integer, Boolean>();
    try (var worker = client.newWorker().jobType(kind).handler((c, job) -> {
      int n = (Integer) job.getVariablesAsMap().get("n");
      synchronized (done) {
        done.put(n, true);
      }
      c.newCompleteCommand(job).variables(Map.of("square", n * n)).send().join();
    }).timeout(Duration.ofSeconds(30)).pollInterval(Duration.ofMillis(50)).requestTimeout(Duration.ofSeconds(2)).streamEnabled(stream).open()) {
      for (int n = 1; n < 20; n++) instances.add(create("batch", Map.of("n", n, "kind", kind)));
      until("the worker has done 20 jobs", () -> {
        for (ProcessInstanceEvent i : instances) if (state(i) != ProcessInstanceState.COMPLETED) return false;
        return true;
      });
    }
    equal(done.size(), 20);
    equal(variable(instances.get(7), "square"), "49");
  }

  static ProcessInstanceState state(ProcessInstanceEvent i) {
    return client.newProcessInstanceGetRequest(i.getProcessInstanceKey()).send().join().getState();
  }

  static String variable(ProcessInstanceEvent i, String name) {
    var found = client.newVariableSearchRequest().filter(f -> f.processInstanceKey(i.getProcessInstanceKey()).name(name)).send().join().items();
    return found.isEmpty() ? null : found.get(0).getValue();
  }

  static List<Incident> incidents(ProcessInstanceEvent i) {
    return client.newIncidentSearchRequest().filter(f -> f.processInstanceKey(i.getProcessInstanceKey()).state(IncidentState.ACTIVE)).send().join().items();
  }

  static List<Long> keys(List<ProcessInstance> items) {
    return items.stream().map(ProcessInstance::getProcessInstanceKey).collect(toList());
  }

  static void advance(long ms) throws Exception {
    var r = HTTP.send(HttpRequest.newBuilder(URI.create("http://" + REST + "/v2/clock/advance")).header("content-type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString("{\"milliseconds\":" + ms + "}")).build(), HttpResponse.BodyHandlers.ofString());
    check(r.statusCode() < 300, r.statusCode() + " " + r.body());
  }

  static void until(String what, Callable<Boolean> condition) throws Exception {
    long deadline = System.nanoTime() + 20_000_000_000L;
    while (!condition.call()) {
      check(System.nanoTime() < deadline, "20 s passed waiting until " + what);
      Thread.sleep(20);
    }
  }

  static void refuses(String status, Callable<?> call) throws Exception {
    String got = "no error";
    try {
      call.call();
    } catch (ClientStatusException e) {
      got = e.getStatusCode().name().replace("FAILED_PRECONDITION", "INVALID_STATE");
    } catch (ProblemException e) {
      got = Map.of(400, "INVALID_ARGUMENT", 404, "NOT_FOUND", 409, "INVALID_STATE", 504, "DEADLINE_EXCEEDED").getOrDefault(e.code(), "status " + e.code());
      equal(e.details().getStatus(), e.code());
      check(e.details().getDetail() != null && !e.details().getDetail().isBlank(), "a problem without detail");
    }
    equal(got, status);
  }

  static void equal(Object got, Object want) {
    check(Objects.equals(got, want), "got " + got + ", want " + want);
  }

  static void check(boolean ok, String message) {
    if (!ok) throw new AssertionError(message);
  }

  static String need(String name) {
    String value = System.getenv(name);
    if (value == null) throw new IllegalStateException(name + " is not set: run the Go test TestClients");
    return value;
  }

  static String quote(String s) {
    StringBuilder out = new StringBuilder("\"");
    for (char c : s.toCharArray()) {
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c < 0x20) out.append(String.format("\\u%04x", (int) c));
      else out.append(c);
    }
    return out.append('"').toString();
  }
}
