/** Runs action.yml like the runner of GitHub Actions: its steps in order, with local files instead of GitHub's cache. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse } from 'yaml'
import { BINARY, createPlace, type Environment, type Running, start } from './binary.js'
import { ROOT, read } from './project.js'

type Values = Readonly<Record<string, string>>

interface ActionStep {
  readonly id?: string
  readonly name: string
  readonly if?: string
  readonly uses?: string
  readonly run?: string
  readonly shell?: string
  readonly env?: Values
  readonly with?: Values
  readonly 'working-directory'?: string
}

interface Action {
  readonly inputs: Readonly<Record<string, { readonly description: string; readonly default: string }>>
  readonly outputs: Readonly<Record<string, { readonly description: string; readonly value: string }>>
  readonly runs: { readonly steps: readonly ActionStep[] }
}

export const ACTION: Action = parse(read('action.yml'))

interface Scope {
  readonly inputs: Values
  readonly steps: Record<string, Values>
}

/** Evaluates the expressions that action.yml uses: `&&`, `==`, `!=`, strings, `always()`, inputs and outputs. */
function evaluate(expression: string, scope: Scope): string {
  const all = expression.split(' && ')
  if (all.length > 1) return all.every((part) => evaluate(part, scope)) ? 'true' : ''
  const [left = '', operator, right = ''] = expression.split(/ (==|!=) /)
  if (operator !== undefined)
    return (evaluate(left, scope) === evaluate(right, scope)) === (operator === '==') ? 'true' : ''
  if (expression === 'always()') return 'true'
  const [, text] = /^'(.*)'$/.exec(expression) ?? []
  const [context, name = '', , output = ''] = expression.split('.')
  const value = text ?? (context === 'inputs' ? scope.inputs[name] : scope.steps[name]?.[output])
  return value ?? ''
}

const filled = (values: Values = {}, scope: Scope): Values =>
  Object.fromEntries(
    Object.entries(values).map(([name, text]) => [
      name,
      text.replace(/\$\{\{ (.*?) \}\}/g, (_, expression: string) => evaluate(expression, scope)),
    ]),
  )

interface JobResult {
  readonly outputs: Values
  readonly failed: boolean
  /** Names of the steps that ran. */
  readonly ran: readonly string[]
  readonly log: string
  readonly summary: string
}

/** A repository with these files, and a runner on a machine where `npm install` installs the program of this source tree. */
export function createRepository(files: Values) {
  const user = createPlace()
  const { folder } = user
  const [shims, temp, caches] = ['shims', 'temp', 'caches'].map((name) => join(user.home, name)) as [
    string,
    string,
    string,
  ]
  const recorded = join(user.home, 'arguments')
  for (const path of [shims, caches]) mkdirSync(path)
  writeFileSync(recorded, '')
  const program = `#!/bin/sh\nprintf '%s\\n' "rushes $*" >> '${recorded}'\nexec '${process.execPath}' '${BINARY}' "$@"\n`
  writeFileSync(join(shims, 'program'), program, { mode: 0o755 })
  const npm = `#!/bin/sh\nset -eu\nprintf '%s\\n' "npm $*" >> '${recorded}'\nmkdir -p "$3/node_modules/.bin"\ncp '${shims}/program' "$3/node_modules/.bin/rushes"\n`
  writeFileSync(join(shims, 'npm'), npm, { mode: 0o755 })
  const place = user.with({ PATH: `${shims}:${user.env.PATH}` })
  const saved: string[] = []
  let running: Running | undefined
  let runId = 0

  /** The checkout, with these files alone. */
  const checkOut = () => {
    rmSync(folder, { recursive: true })
    mkdirSync(folder)
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(folder, name, '..'), { recursive: true })
      writeFileSync(join(folder, name), text)
    }
  }
  checkOut()

  async function runScript(step: ActionStep, scope: Scope, env: Environment) {
    const own = mkdtempSync(join(user.home, 'step-'))
    const path = (name: string) => join(own, name)
    for (const name of ['output', 'summary']) writeFileSync(path(name), '')
    writeFileSync(path('script.sh'), step.run ?? '')
    const { where = '.' } = filled({ where: step['working-directory'] ?? '.' }, scope)
    const its = place.with({
      ...env,
      GITHUB_OUTPUT: path('output'),
      GITHUB_STEP_SUMMARY: path('summary'),
      ...filled(step.env, scope),
    })
    running = start(
      { ...its, folder: resolve(folder, where) },
      ['--noprofile', '--norc', '-eo', 'pipefail', path('script.sh')],
      {
        command: 'bash',
        stdin: 'ignore',
      },
    )
    const { code, stdout, stderr } = await running.ended
    const lines = readFileSync(path('output'), 'utf8').matchAll(/^([\w-]+)=(.*)$/gm)
    const outputs: Values = Object.fromEntries([...lines].map(([, name, value]) => [name, value]))
    return {
      failed: code !== 0,
      log: stdout + stderr,
      outputs,
      summary: readFileSync(path('summary'), 'utf8'),
    }
  }

  /** Runs the action in the last job. `env`: environment of the job. */
  async function step(given: Values, env: Environment = {}): Promise<JobResult> {
    const defaults = Object.entries(ACTION.inputs).map(([name, input]) => [name, input.default])
    const scope: Scope = { inputs: { ...Object.fromEntries(defaults), ...given }, steps: {} }
    const job = {
      ...{ GITHUB_ACTIONS: 'true', GITHUB_ACTION_PATH: ROOT, GITHUB_JOB: 'assets', GITHUB_RUN_ATTEMPT: '1' },
      ...{
        GITHUB_RUN_ID: String(runId),
        GITHUB_WORKFLOW_REF: 'acme/site/.github/workflows/assets.yml@refs/heads/main',
      },
      ...{ CI: 'true', RUNNER_OS: 'Linux', RUNNER_TEMP: temp, ...env },
    }
    const result = { failed: false, ran: [] as string[], log: '', summary: '' }
    for (const each of ACTION.runs.steps) {
      const condition = each.if ?? 'always()'
      if ((result.failed && !each.if?.startsWith('always()')) || evaluate(condition, scope) !== 'true')
        continue
      result.ran.push(each.name)
      const { key = '', path = '', 'restore-keys': prefix = '' } = filled(each.with, scope)
      if (each.uses?.startsWith('actions/cache/restore@')) {
        const found = saved.findLast((name) => name.startsWith(prefix))
        if (found !== undefined) cpSync(join(caches, found), path, { recursive: true })
      } else if (each.uses?.startsWith('actions/cache/save@')) {
        cpSync(path, join(caches, key), { recursive: true })
        saved.push(key)
      } else {
        const { failed, log, summary, outputs } = await runScript(each, scope, job)
        scope.steps[each.id ?? ''] = outputs
        result.failed ||= failed
        result.log += log
        result.summary += summary
      }
    }
    const outputs = filled(
      Object.fromEntries(Object.entries(ACTION.outputs).map(([name, { value }]) => [name, value])),
      scope,
    )
    return { ...result, outputs }
  }

  return {
    folder,
    home: user.home,
    temp,
    /** Keys of the saved caches, oldest first. */
    saved,
    checkOut,
    step,
    /** Runs the action in a new job, on a new machine. */
    job(given: Values, env?: Environment): Promise<JobResult> {
      rmSync(temp, { recursive: true, force: true })
      mkdirSync(temp)
      runId++
      return step(given, env)
    },
    has: (path: string) => existsSync(join(folder, path)),
    /** Sends a signal to the script of the current step. */
    interrupt: () => running?.kill('SIGINT'),
    /** The calls of npm and rushes. */
    calls: () => readFileSync(recorded, 'utf8'),
  }
}
