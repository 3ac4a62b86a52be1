package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/engine/enginetest"
)

// scenarioReport is the JSON document of journeyman test.
type scenarioReport struct {
	Passed   int                        `json:"passed"`
	Failed   int                        `json:"failed"`
	Mistakes []scenarioMistake          `json:"mistakes"` // of the files; such a file is not run
	Cases    []scenarioCase             `json:"cases"`
	Coverage []enginetest.ModelCoverage `json:"coverage"` // which elements ran, per model
}

type scenarioMistake struct {
	File  string `json:"file"`
	Line  int    `json:"line"`  // from 1, 0 = unknown
	Path  string `json:"path"`  // for example testCases[0].instructions[2].state
	Value string `json:"value"` // what stands there; empty when it is missing
	Want  string `json:"want"`
}

type scenarioCase struct {
	File         string  `json:"file"`
	Name         string  `json:"name"`
	Passed       bool    `json:"passed"`
	Error        string  `json:"error"` // empty when it passed
	Milliseconds float64 `json:"milliseconds"`
}

func newTest(s Streams) *cobra.Command {
	var modelFiles []string
	var others, asJSON, schema bool
	var coverage string
	cmd := &cobra.Command{
		Use: "test FILE.json...", Short: "Run test cases of models, without any code or service",
		Long: `Test runs scenario files: what workers answer, what happens, what must be true. The fields are those of Camunda
Process Test's JSON test cases; --schema prints a JSON Schema with all of them. Each test case runs in an engine of its
own inside this program, with a clock that the test case moves: half an hour passes at once.

The models are those given with --model, or else every .bpmn file beside the scenario file.
Job types that no test case mocks stay open; --complete-others completes them.

  {"testCases": [{"name": "sold out", "instructions": [
    {"type": "MOCK_JOB_WORKER_THROW_BPMN_ERROR", "jobType": "stock.take", "errorCode": "SOLD_OUT"},
    {"type": "CREATE_PROCESS_INSTANCE", "processDefinitionSelector": {"processDefinitionId": "order"}},
    {"type": "ASSERT_ELEMENT_INSTANCE", "processInstanceSelector": {"processDefinitionId": "order"},
     "elementSelector": {"elementName": "Tell the customer"}, "state": "IS_COMPLETED"}]}]}

It exits with 1 when a test case fails or a file has a mistake.`,
		RunE: func(cmd *cobra.Command, paths []string) error {
			if schema {
				_, err := s.Out.Write(enginetest.ScenarioSchema())
				return err
			}
			if len(paths) == 0 {
				return exit(ExitUsage, errors.New("no scenario file given"))
			}
			progress := s.Out
			if asJSON {
				progress = s.Err
			}
			r := scenarioRunner{models: modelFiles, others: others, progress: progress}
			report, err := r.run(cmd.Context(), paths)
			if err != nil {
				return err
			}
			if coverage != "" {
				if err := r.coverage.Write(coverage); err != nil {
					return exit(ExitMissing, err)
				}
			}
			if asJSON {
				if err := printJSON(s.Out, report); err != nil {
					return err
				}
			} else {
				if err := r.coverage.Text(s.Out); err != nil {
					return err
				}
				fmt.Fprintf(s.Out, "%d passed, %d failed, %d mistakes in files\n", report.Passed, report.Failed, len(report.Mistakes))
			}
			if report.Failed+len(report.Mistakes) > 0 {
				return exit(ExitWrong, errSilent)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&modelFiles, "model", nil, "BPMN file to deploy; default: all beside each scenario file")
	f.BoolVar(&others, "complete-others", false, "complete the jobs of types that no test case mocks")
	f.StringVar(&coverage, "coverage", "", "folder for coverage.txt, coverage.json and an SVG per model")
	f.BoolVar(&schema, "schema", false, "print the JSON Schema of scenario files and do nothing else")
	f.BoolVar(&asJSON, "json", false, "print JSON; progress goes to standard error")
	return cmd
}

// scenarioRunner runs scenario files one after the other.
type scenarioRunner struct {
	models   []string
	others   bool
	progress io.Writer
	coverage enginetest.Coverage
}

func (r *scenarioRunner) run(ctx context.Context, paths []string) (scenarioReport, error) {
	report := scenarioReport{Mistakes: []scenarioMistake{}, Cases: []scenarioCase{}}
	for _, path := range paths {
		f, err := enginetest.ReadScenarios(path)
		found := enginetest.Mistakes(err)
		if err != nil && found == nil {
			return report, exit(ExitMissing, err)
		}
		for _, m := range found {
			fmt.Fprintln(r.progress, m)
			report.Mistakes = append(report.Mistakes, scenarioMistake(*m))
		}
		if err != nil {
			continue
		}
		models, err := r.modelsFor(path)
		if err != nil {
			return report, err
		}
		for _, c := range f.TestCases {
			if err := r.one(ctx, path, models, c, &report); err != nil {
				return report, err
			}
		}
	}
	report.Coverage = r.coverage.Models()
	if report.Coverage == nil {
		report.Coverage = []enginetest.ModelCoverage{}
	}
	return report, nil
}

// modelsFor gives the models of a scenario file.
func (r *scenarioRunner) modelsFor(path string) ([]enginetest.Model, error) {
	files := r.models
	if len(files) == 0 {
		var err error
		if files, err = filepath.Glob(filepath.Join(filepath.Dir(path), "*.bpmn")); err != nil {
			return nil, exit(ExitMissing, err)
		}
		if len(files) == 0 {
			return nil, exit(ExitMissing, fmt.Errorf("%s: no .bpmn file beside it; name the models with --model", path))
		}
		slices.Sort(files)
	}
	models := make([]enginetest.Model, len(files))
	for i, file := range files {
		models[i] = enginetest.File(file)
		if _, _, err := models[i](); err != nil {
			return nil, exit(ExitMissing, err)
		}
	}
	return models, nil
}

// one runs one test case. The error is a signal's.
func (r *scenarioRunner) one(ctx context.Context, path string, models []enginetest.Model, c enginetest.Scenario, report *scenarioReport) error {
	s := enginetest.Scenarios{Models: models, Coverage: &r.coverage}
	if r.others {
		s.Prepare = func(e *enginetest.Env) { e.MockOthers(nil) }
	}
	begin := time.Now()
	err := s.Play(ctx, c)
	if ctx.Err() != nil {
		return errStopped
	}
	out := scenarioCase{File: path, Name: c.Name, Passed: err == nil, Milliseconds: float64(time.Since(begin).Microseconds()) / 1000}
	if err != nil {
		out.Error = err.Error()
		report.Failed++
		fmt.Fprintf(r.progress, "FAIL %s: %s: %s\n", path, c.Name, out.Error)
	} else {
		report.Passed++
		fmt.Fprintf(r.progress, "ok   %s: %s (%.0f ms)\n", path, c.Name, out.Milliseconds)
	}
	report.Cases = append(report.Cases, out)
	return nil
}
