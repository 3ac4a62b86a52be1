package feel_test

import (
	"fmt"

	"github.com/vitrip/journeyman/bpmn/feel"
)

func ExampleCompile() {
	expr, err := feel.Compile(`every s in segments satisfies s.status = "refunded"`)
	if err != nil {
		fmt.Println(err)
		return
	}
	scope, err := feel.FromJSON([]byte(`{"segments": [{"status": "refunded"}, {"status": "refused"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	v, warnings, err := expr.Eval(scope)
	fmt.Println(v, v.Kind(), warnings, err)
	// Output: false BOOLEAN [] <nil>
}

func ExampleExpr_Eval_missingVariable() {
	expr, err := feel.Compile(`amount > 5`)
	if err != nil {
		fmt.Println(err)
		return
	}
	v, warnings, _ := expr.Eval(nil)
	fmt.Println(feel.Mismatch(expr.Source(), v, warnings, feel.Boolean))
	// Output:
	// Expected result of the expression 'amount > 5' to be 'BOOLEAN', but was 'NULL'. The evaluation reported the following warnings:
	// [NO_VARIABLE_FOUND] No variable found with name 'amount'
}
