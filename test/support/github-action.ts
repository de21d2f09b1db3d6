/**
 * Runs a composite action like the runner of GitHub Actions: its steps in order, with local files instead of GitHub's
 * services.
 */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { type Environment, type Place, type Running, start } from './binary.js'

interface ActionStep {
  readonly id?: string
  readonly name: string
  readonly if?: string
  readonly uses?: string
  readonly run?: string
  readonly shell?: string
  readonly env?: Readonly<Record<string, string>>
  readonly with?: Readonly<Record<string, string>>
  readonly 'working-directory'?: string
  readonly 'continue-on-error'?: boolean
}

interface Action {
  readonly inputs: Readonly<Record<string, { readonly description: string; readonly default?: string }>>
  readonly outputs: Readonly<Record<string, { readonly description: string; readonly value: string }>>
  readonly runs: { readonly using: string; readonly steps: readonly ActionStep[] }
}

export const ACTION_FOLDER = fileURLToPath(new URL('../..', import.meta.url))
export const ACTION: Action = parse(readFileSync(join(ACTION_FOLDER, 'action.yml'), 'utf8'))

type Values = Readonly<Record<string, string>>
type StepOutputs = Readonly<Record<string, Values>>

interface Scope {
  readonly inputs: Values
  readonly steps: StepOutputs
  readonly hasFailed: boolean
}

/**
 * Evaluates the GitHub expressions that action.yml uses: `||`, `&&`, `==`, `!=`, strings, `always()`, inputs and
 * outputs.
 */
function evaluate(expression: string, scope: Scope): string {
  const split = (operator: string) => expression.split(operator).map((part) => part.trim())
  const either = split('||')
  if (either.length > 1) return either.map((part) => evaluate(part, scope)).find(Boolean) ?? ''
  const all = split('&&')
  if (all.length > 1) return all.every((part) => evaluate(part, scope) !== '') ? 'true' : ''
  for (const [operator, isEqual] of [
    ['==', true],
    ['!=', false],
  ] as const) {
    const [left, right] = split(operator)
    if (left !== undefined && right !== undefined)
      return (evaluate(left, scope) === evaluate(right, scope)) === isEqual ? 'true' : ''
  }
  if (expression === 'always()') return 'true'
  const string = /^'([^']*)'$/.exec(expression)
  if (string !== null) return string[1] ?? ''
  const [context, name = '', , output = ''] = expression.split('.')
  if (context === 'inputs' && name in scope.inputs) return scope.inputs[name] ?? ''
  if (context === 'steps') return scope.steps[name]?.[output] ?? ''
  throw new Error(`not an expression of this test: ${expression}`)
}

const filled = (text: string, scope: Scope): string =>
  text.replace(/\$\{\{\s*(.*?)\s*\}\}/gs, (_, expression: string) => evaluate(expression, scope))

const filledValues = (values: Values = {}, scope: Scope): Values =>
  Object.fromEntries(Object.entries(values).map(([name, text]) => [name, filled(text, scope)]))

/** Whether the step runs. Without `always()`, it runs only if no step has failed. */
const isDue = ({ if: condition = '' }: ActionStep, scope: Scope): boolean =>
  (!scope.hasFailed || condition.includes('always()')) &&
  (condition === '' || evaluate(condition, scope) === 'true')

/** Parses `name=value`, or `name<<END` with the lines before END. */
function parseOutputs(text: string): Values {
  const found: Record<string, string> = {}
  for (const [, name = '', value, , block] of text.matchAll(/^([\w-]+)(?:=(.*)|<<(.*)\n([\s\S]*?)\n\3)$/gm))
    found[name] = value ?? block ?? ''
  return found
}

export interface JobResult {
  readonly outputs: Values
  readonly failed: boolean
  /** Names of the steps that ran. */
  readonly ran: readonly string[]
  readonly log: string
  readonly summary: string
}

export interface Runner {
  /** Keys of the saved caches, oldest first. */
  readonly caches: readonly string[]
  /** Temporary folder of the current or last job. */
  readonly temp: string
  /** Process of the current step. */
  readonly running: Running | undefined
  /** Runs a job with one step that uses the action. `env`: environment of the job. */
  job(inputs: Values, env?: Environment): Promise<JobResult>
  /** Runs another step in the last job. */
  step(inputs: Values, env?: Environment): Promise<JobResult>
}

/**
 * Creates a runner for a repository whose checkout is the folder of the place. Jobs run one after another on the same
 * machine.
 */
export function createRunner(place: Place): Runner {
  const temp = join(place.home, 'temp')
  const saved = mkdtempSync(join(place.home, 'caches-'))
  const caches: string[] = []
  let running: Running | undefined
  let runId = 0

  function restore(values: Values): void {
    const found = [values.key, values['restore-keys']]
      .map((key) => caches.findLast((each) => key !== undefined && key !== '' && each.startsWith(key)))
      .find((each) => each !== undefined)
    if (found !== undefined) cpSync(join(saved, found), values.path ?? '', { recursive: true })
  }

  function save({ key = '', path = '' }: Values): void {
    cpSync(path, join(saved, key), { recursive: true })
    caches.push(key)
  }

  async function runScript(step: ActionStep, scope: Scope, env: Environment) {
    const files = mkdtempSync(join(place.home, 'step-'))
    const script = join(files, 'script.sh')
    writeFileSync(script, step.run ?? '')
    const names = { GITHUB_OUTPUT: 'output', GITHUB_STEP_SUMMARY: 'summary', GITHUB_ENV: 'env' }
    const variables = Object.fromEntries(
      Object.entries(names).map(([name, file]) => [name, join(files, file)]),
    )
    for (const path of Object.values(variables)) writeFileSync(path, '')
    const folder = resolve(place.folder, filled(step['working-directory'] ?? '.', scope))
    const its = place.with({ ...env, ...variables, ...filledValues(step.env, scope) })
    running = start({ ...its, folder }, ['--noprofile', '--norc', '-eo', 'pipefail', script], {
      command: 'bash',
      stdin: 'ignore',
    })
    const { code, signal, stdout, stderr } = await running.ended
    running = undefined
    const read = (name: string) => readFileSync(variables[name] ?? '', 'utf8')
    if (read('GITHUB_ENV') !== '') throw new Error('the action changes the environment of the job')
    return {
      failed: code !== 0 || signal !== null,
      log: `${stdout}${stderr}`,
      outputs: parseOutputs(read('GITHUB_OUTPUT')),
      summary: read('GITHUB_STEP_SUMMARY'),
    }
  }

  return {
    caches,
    temp,
    get running() {
      return running
    },
    job(given, env) {
      rmSync(temp, { recursive: true, force: true })
      mkdirSync(temp)
      runId++
      return this.step(given, env)
    },
    async step(given, env = {}) {
      const defaults = Object.entries(ACTION.inputs).map(([name, { default: value = '' }]) => [name, value])
      const inputs: Values = { ...Object.fromEntries(defaults), ...given }
      const steps: Record<string, Values> = {}
      const ran: string[] = []
      let [log, summary, hasFailed] = ['', '', false]
      const variables = {
        CI: 'true',
        GITHUB_ACTIONS: 'true',
        GITHUB_ACTION_PATH: ACTION_FOLDER,
        GITHUB_JOB: 'assets',
        GITHUB_RUN_ATTEMPT: '1',
        GITHUB_RUN_ID: String(runId),
        GITHUB_WORKFLOW_REF: 'acme/site/.github/workflows/assets.yml@refs/heads/main',
        GITHUB_WORKSPACE: place.folder,
        RUNNER_OS: 'Linux',
        RUNNER_TEMP: temp,
        ...env,
      }
      for (const step of ACTION.runs.steps) {
        const scope = { inputs, steps, hasFailed }
        if (!isDue(step, scope)) continue
        ran.push(step.name)
        const values = filledValues(step.with, scope)
        if (step.uses?.startsWith('actions/cache/restore@')) restore(values)
        else if (step.uses?.startsWith('actions/cache/save@')) save(values)
        else if (step.run === undefined) throw new Error(`not a step of this test: ${step.uses}`)
        else {
          const done = await runScript(step, scope, variables)
          if (step.id !== undefined) steps[step.id] = done.outputs
          log += done.log
          summary += done.summary
          hasFailed ||= done.failed
        }
      }
      const scope = { inputs, steps, hasFailed }
      const outputs = Object.entries(ACTION.outputs).map(([name, { value }]) => [name, filled(value, scope)])
      return { outputs: Object.fromEntries(outputs), failed: hasFailed, ran, log, summary }
    },
  }
}

/** Replaces `npm`: `npm install` installs the program of this source tree. Records the arguments of both programs. */
export function fakeNpm(place: Place, bin: string): { readonly place: Place; arguments(): string } {
  const folder = join(place.home, 'shims')
  const record = join(place.home, 'arguments')
  mkdirSync(folder)
  appendFileSync(record, '')
  writeFileSync(
    join(folder, 'npm'),
    `#!/usr/bin/env bash
set -euo pipefail
printf '%s\\n' "npm $*" >> '${record}'
[ "$1 $2" = 'install --prefix' ]
mkdir -p "$3/node_modules/.bin"
cat > "$3/node_modules/.bin/rushes" <<'END'
#!/bin/sh
printf '%s\\n' "rushes $*" >> '${record}'
exec '${process.execPath}' '${bin}' "$@"
END
chmod +x "$3/node_modules/.bin/rushes"
`,
    { mode: 0o755 },
  )
  return {
    place: place.with({ PATH: `${folder}:${place.env.PATH}` }),
    arguments: () => (existsSync(record) ? readFileSync(record, 'utf8') : ''),
  }
}
