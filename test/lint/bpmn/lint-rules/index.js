// What Zeebe refuses at deploy, or turns into an incident, and the public rules let pass.
module.exports = {
  configs: {
    all: {
      rules: {
        'compensation-wiring': 'error',
        'error-boundary-interrupting': 'error',
        'expression-required': 'error',
        'implicit-end': 'error',
        'static-retries': 'error',
      },
    },
  },
};
