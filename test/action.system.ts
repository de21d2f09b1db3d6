/** action.yml: what it promises, and its steps, carried out with bash against this tree's program. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { randomOutput } from './support/engines.js'
import {
  BINARY,
  createPlace,
  type Environment,
  filesBelow,
  type Running,
  serve,
  start,
  until,
} from './support/index.js'
import { ROOT, read } from './support/project.js'

const ACTION: Action = parse(read('action.yml'))
const { inputs, outputs, runs } = ACTION

it('action.yml runs scripts with bash, pins other actions, and gives the key to one step', () => {
  for (const { run, shell, uses } of runs.steps) {
    expect(shell).toBe(run === undefined ? undefined : 'bash')
    if (uses !== undefined) expect(uses).toMatch(/^actions\/[a-z/-]+@v\d+$/)
  }
  const having = runs.steps.filter((step) => JSON.stringify(step).includes('inputs.key'))
  expect(having.map(({ id }) => id)).toEqual(['batch'])
})

it('action.yml is described by docs/github-actions.md with its outputs and version', () => {
  const page = read('docs/github-actions.md')
  const rows = (page.split('## Outputs\n')[1] ?? '').split('\n## ')[0]?.matchAll(/^\| `([\w-]+)` \|/gm) ?? []
  expect([...rows].map(([, name]) => name)).toEqual(Object.keys(outputs))
  expect(page).toContain(`/rushes@v${JSON.parse(read('package.json')).version}\n`)
})

const ONE = 'defaults: { kind: image }\nruns:\n  - { name: fox, prompt: a fox, output: assets/fox.png }\n'
const TWO = `${ONE}  - { name: hen, prompt: a hen, output: assets/hen.png }\n`
const SAVES = 'Save the state folder'

/** Fails for a prompt with "bad", and waits for the file `go` while there is a file `slow`. */
const ENGINE = `image=touch began; ! grep -q bad || exit 3
while [ -e slow ] && [ ! -e go ]; do sleep 0.05; done
${randomOutput('1.png', 2_000)}`

async function startService() {
  const { url, apiKey, folder } = await serve(createPlace(), ['--engine', ENGINE])
  const env = { RUSHES_IMAGE_MODEL: 'rushes/preview-image' }
  return { apiKey, folder, env, inputs: { key: apiKey, 'base-url': url } }
}

describe.concurrent('the action', () => {
  it('checks without a key, and changes nothing', async () => {
    const repository = createRepository({ 'rushes.yaml': TWO })
    const checked = await repository.job({ check: 'true' })
    expect(checked).toMatchObject({ failed: true, outputs: { created: '', 'exit-code': '10' } })
    expect(checked.log).toMatch(/^::error file=rushes\.yaml,line=3,title=fox::/m)
    expect(checked.ran).toEqual(['Install rushes', 'Run rushes batch'])
    expect([filesBelow(repository.folder), repository.saved]).toEqual([['rushes.yaml'], []])
  })

  it('keeps separate state for each manifest, and for each workflow on all branches', async () => {
    const repository = createRepository({
      'rushes.yaml': ONE,
      'more.yaml': TWO.replaceAll('assets/', 'more/'),
    })
    const first = await repository.job({ local: 'true', args: '\n--concurrency=1\n' })
    expect(first).toMatchObject({ failed: false, outputs: { created: '1', failed: '0', 'exit-code': '0' } })
    expect(first.summary).toMatch(/### rushes\.yaml\n\n1 run: 1 created/)
    expect(readFileSync(first.outputs.json ?? '', 'utf8')).toMatch(/"name": "fox",[\s\S]*"summary": \{/)
    expect(repository.calls()).toContain('rushes batch --concurrency=1 --report ')
    const more = await repository.step({ local: 'true', manifest: 'more.yaml' })
    expect(more.outputs).toMatchObject({ created: '2' })
    expect(new Set(repository.saved).size).toBe(2)
    const created = async (workflow: string) => {
      repository.checkOut()
      const env = { GITHUB_WORKFLOW_REF: `acme/site/.github/workflows/${workflow}` }
      return (await repository.job({ local: 'true' }, env)).outputs.created
    }
    expect(await created('assets.yml@refs/heads/next')).toBe('0')
    expect(await created('nightly.yml@refs/heads/main')).toBe('1')
  })

  it('uses the version of the project, or else of the action', async () => {
    const repository = createRepository({ 'rushes.yaml': ONE })
    const { version } = JSON.parse(read('package.json'))
    await repository.job({ check: 'true' })
    await repository.job({ check: 'true', version: '0.0.7' })
    const installs = [...repository.calls().matchAll(/^npm install .* -- (.*)$/gm)].map(([, name]) => name)
    expect(installs).toEqual([`rushes@${version}`, 'rushes@0.0.7'])
    const own = join(repository.folder, 'node_modules/.bin')
    mkdirSync(own, { recursive: true })
    writeFileSync(join(own, 'rushes'), '#!/bin/sh\necho "its own"\n', { mode: 0o755 })
    expect((await repository.job({ check: 'true' })).log).toMatch(/^its own\nits own\n/)
  })

  it('keeps the other files when a row fails, and reveals no key', async () => {
    const service = await startService()
    const repository = createRepository({ 'rushes.yaml': TWO.replace('a hen', 'a bad hen') })
    const job = await repository.job(service.inputs, service.env)
    expect(job).toMatchObject({ failed: true, outputs: { created: '1', failed: '1', 'exit-code': '10' } })
    expect(job.ran).toContain(SAVES)
    expect(repository.saved).toEqual([expect.stringMatching(/^rushes-Linux-assets-\d+-\d+-1-1-\d+$/)])
    expect(job.log).toMatch(/^::error file=rushes\.yaml,line=4,title=hen::/m)
    for (const text of [job.log, job.summary, JSON.stringify(job.outputs), repository.calls()])
      expect(text).not.toContain(service.apiKey)
    for (const root of [repository.temp, repository.folder])
      for (const path of filesBelow(root))
        expect(readFileSync(join(root, path), 'latin1')).not.toContain(service.apiKey)
  })

  it('does not pay again for what two steps made, while it is not committed', async () => {
    const service = await startService()
    const repository = createRepository({ 'rushes.yaml': TWO })
    const only = (name: string) => ({ ...service.inputs, args: `--only=${name}` })
    expect((await repository.job(only('fox'), service.env)).outputs.created).toBe('1')
    expect((await repository.step(only('hen'), service.env)).outputs.created).toBe('1')
    for (const notice of [1, 1, 0, 0]) {
      // The third job begins with what the second one has committed, and changes nothing.
      if (notice === 1) repository.checkOut()
      const job = await repository.job(service.inputs, service.env)
      expect(job).toMatchObject({ failed: false, outputs: { created: '0', 'exit-code': '0' } })
      expect(job.log.match(/::notice title=rushes::The results of an earlier job/g) ?? []).toHaveLength(
        notice,
      )
      expect(repository.has('assets/fox.png') && repository.has('assets/hen.png')).toBe(true)
    }
  })

  it('does not pay again for what a job made after another one was committed', async () => {
    const repository = createRepository({ 'rushes.yaml': ONE })
    const path = (name: string) => join(repository.folder, name)
    expect((await repository.job({ local: 'true' })).outputs.created).toBe('1')
    const committed = readFileSync(path('rushes.lock.json'))
    writeFileSync(path('rushes.yaml'), TWO)
    expect((await repository.job({ local: 'true' })).outputs.created).toBe('1')
    writeFileSync(path('rushes.lock.json'), committed)
    rmSync(path('assets/hen.png'))
    const next = await repository.job({ local: 'true' })
    expect(next).toMatchObject({ failed: false, outputs: { created: '0' } })
    expect(next.log).toContain('::notice title=rushes::The results of an earlier job')
    expect(repository.has('assets/hen.png')).toBe(true)
  })

  it('ends the batch of a canceled job, and continues its run in the next one', async () => {
    const service = await startService()
    writeFileSync(join(service.folder, 'slow'), '')
    const repository = createRepository({ 'rushes.yaml': ONE })
    const canceled = repository.job(service.inputs, service.env)
    await until('a run in progress', () => existsSync(join(service.folder, 'began')) || undefined)
    repository.interrupt()
    const job = await canceled
    expect(job).toMatchObject({ failed: true, outputs: { 'exit-code': '130' } })
    expect(job.ran).toContain(SAVES)
    repository.checkOut()
    writeFileSync(join(service.folder, 'go'), '')
    const next = await repository.job(service.inputs, service.env)
    expect(next).toMatchObject({ failed: false, outputs: { 'exit-code': '0' } })
    expect(readFileSync(next.outputs.json ?? '', 'utf8')).toContain('"result": "downloaded"')
  })
})

const HOSTILE = `a "b" 'c' $(touch pwned) \`touch pwned\`; touch pwned #\n::error::pwned`

it.concurrent('inputs are data in the manifest, its name, its folder and its outputs', async () => {
  const folder = HOSTILE.replaceAll('/', '')
  const manifest = `-${folder}.json`
  const row = { name: '::warning::x', kind: 'image', prompt: HOSTILE, output: '-assets/-fox.png' }
  const repository = createRepository({ [join(folder, manifest)]: JSON.stringify({ runs: [row] }) })
  for (const created of ['1', '0']) {
    const job = await repository.job({ 'working-directory': folder, manifest, local: 'true', key: HOSTILE })
    expect(job).toMatchObject({ failed: false, outputs: { created } })
    expect(job.log).not.toMatch(/^\s*::(error|warning)/m)
    expect(repository.has(join(folder, '-assets/-fox.png'))).toBe(true)
    expect(filesBelow(repository.folder).filter((path) => path.endsWith('pwned'))).toEqual([])
    repository.checkOut()
  }
})

const REFUSED = {
  check: 'check and local are true or false',
  local: 'check and local are true or false',
  'cache-key': 'cache-key has other characters',
}
const others = Object.keys(inputs).filter(
  (name) => name !== 'working-directory' && !Object.hasOwn(REFUSED, name),
)
it.concurrent.each([
  ...Object.entries(REFUSED).map(([name, message]) => [[name], message] as const),
  [others, 'Too many arguments'] as const,
])('inputs are data %j: %s', async (names, message) => {
  const repository = createRepository({ 'rushes.yaml': ONE })
  const hostile = Object.fromEntries(names.map((name) => [name, HOSTILE]))
  const { failed, log } = await repository.job({ check: 'true', ...hostile })
  expect([failed, log]).toEqual([true, expect.stringContaining(message)])
  expect(log).not.toMatch(/syntax error|^::error::pwned/m)
  expect(
    [repository.folder, repository.temp].flatMap(filesBelow).filter((path) => path.endsWith('pwned')),
  ).toEqual([])
})

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
  readonly inputs: Readonly<Record<string, { readonly default: string }>>
  readonly outputs: Readonly<Record<string, { readonly value: string }>>
  readonly runs: { readonly steps: readonly ActionStep[] }
}

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
function createRepository(files: Values) {
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
      GITHUB_ACTIONS: 'true',
      GITHUB_ACTION_PATH: ROOT,
      GITHUB_JOB: 'assets',
      GITHUB_RUN_ATTEMPT: '1',
      GITHUB_RUN_ID: String(runId),
      GITHUB_WORKFLOW_REF: 'acme/site/.github/workflows/assets.yml@refs/heads/main',
      CI: 'true',
      RUNNER_OS: 'Linux',
      RUNNER_TEMP: temp,
      ...env,
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
