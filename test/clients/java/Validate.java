import io.camunda.zeebe.model.bpmn.Bpmn;
import io.camunda.zeebe.model.bpmn.BpmnModelInstance;
import io.camunda.zeebe.model.bpmn.traversal.ModelWalker;
import io.camunda.zeebe.model.bpmn.validation.ValidationVisitor;
import io.camunda.zeebe.model.bpmn.validation.zeebe.ZeebeDesignTimeValidators;
import java.io.File;
import java.util.ArrayList;
import java.util.List;

/** Prints for each file a line: its name, a tab, and what Zeebe's design-time validators say, or "ok". */
public final class Validate {
  public static void main(String[] files) {
    for (String file : files) {
      List<String> errors = new ArrayList<>();
      try {
        BpmnModelInstance model = Bpmn.readModelFromFile(new File(file));
        ValidationVisitor visitor = new ValidationVisitor(ZeebeDesignTimeValidators.VALIDATORS);
        new ModelWalker(model).walk(visitor);
        visitor.getValidationResult().getResults().forEach((element, results) -> results.forEach(r ->
            errors.add(element.getElementType().getTypeName() + " " + element.getAttributeValue("id") + ": " + r.getMessage())));
      } catch (RuntimeException e) {
        Throwable cause = e;
        while (cause.getCause() != null) cause = cause.getCause();
        errors.add(cause.toString());
      }
      System.out.println(new File(file).getName() + "\t" + (errors.isEmpty() ? "ok" : String.join("; ", errors).replaceAll("\\s+", " ")));
    }
  }
}
