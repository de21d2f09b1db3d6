/**
 * docs/schemas against what is really printed. Beside the outputs that are made here, every command line of the tests in
 * process is held against them (test/support/cli.ts).
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fullName } from '../src/cli/help/find-command.js'
import { CONFIG_KEYS } from '../src/cli/settings/table.js'
import { EXIT } from '../src/errors.js'
import { type Fetch, HttpFailure } from '../src/host/http.js'
import { createInterrupts } from '../src/host/interrupts.js'
import { createCliService, type Ran, runCli } from './support/cli.js'
import {
  createHostedApis,
  FAL_MODELS,
  FAL_PRICES,
  FAL_SCHEMA,
  priceOf,
  schemaOf,
} from './support/hosted-apis.js'
import { everyCommand, read } from './support/project.js'
import { expectToFit, misfitsOf, nameOfAnswer, SCHEMAS, validatorOf } from './support/schemas.js'
import { temporaryFolder } from './support/service.js'

const valuesOf = (text: string): readonly unknown[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))

/** Under `loses` the answers of creates are lost. */
async function createPlace() {
  const folder = temporaryFolder()
  const service = await createCliService()
  const loses: Fetch = async (request) => {
    if (request.method !== 'POST') return service.fetch(request)
    throw new HttpFailure('read ECONNRESET', { sent: true, code: 'ECONNRESET' })
  }
  const manifest = join(folder, 'shots.json')
  const row = { name: 'fox', kind: 'image', prompt: 'a fox' }
  writeFileSync(manifest, JSON.stringify([row, { ...row, name: 'hen', prompt: 'a hen', quality: 'high' }]))
  return { ...service, folder, loses, manifest, lock: () => readJson(join(folder, 'shots.lock.json')) }
}

type Place = Awaited<ReturnType<typeof createPlace>>

const IMAGE = ['run', 'image', 'a fox', '--json']

const administered = async ({ run, dataFolder }: Place, ...words: string[]) =>
  valuesOf((await run(['admin', ...words, '--json', '--data', dataFolder])).stdout)

/** How to get values of each schema; `admin-migrate` needs a server and is in `schemas.system.ts`. */
const MET: Readonly<Record<string, (place: Place) => Promise<readonly unknown[]>>> = {
  run: async ({ run, folder }) => {
    const made = await run([...IMAGE, '-n', '2', '-o', `${folder}/{index}.png`])
    const [{ id }] = valuesOf(made.stdout) as [{ id: string }]
    const further = [
      await run([...IMAGE, '--no-wait']),
      await run(['status', id, '--json']),
      await run(['wait', id, '--json']),
      await run(['download', id, '--json', '-o', `${folder}/again/`]),
      await run(['wait', '--last', '--json', '--timeout', '1ms']),
      await run(['cancel', '--last', '--json']),
    ]
    return [made, ...further].flatMap(({ stdout }) => valuesOf(stdout))
  },
  list: async ({ run, loses, folder }) => {
    await run([...IMAGE, '-o', `${folder}/a.png`])
    await run([...IMAGE, '--no-wait'])
    await run(IMAGE, { fetch: loses })
    return valuesOf((await run(['list', '--json'])).stdout)
  },
  init: async ({ run, folder }) => valuesOf((await run(['init', folder, '--json'])).stdout),
  gallery: async ({ run, folder }) => {
    await run([...IMAGE, '-o', `${folder}/a.png`])
    await run(IMAGE)
    return valuesOf((await run(['gallery', '--json', '-o', `${folder}/gallery.html`])).stdout)
  },
  show: async ({ run, loses, folder }) => {
    await run([...IMAGE, '-o', `${folder}/a.png`])
    await run(IMAGE, { fetch: loses })
    const rows = valuesOf((await run(['list', '--json'])).stdout) as { id: string | null; key: string }[]
    const shown = rows.map(({ id, key }) => run(['show', id ?? key, '--json']))
    return (await Promise.all(shown)).flatMap(({ stdout }) => valuesOf(stdout))
  },
  open: async ({ run, folder }) => {
    await run([...IMAGE, '-o', `${folder}/a.png`])
    return valuesOf((await run(['open', '--last', '--json'])).stdout)
  },
  spend: async ({ run }) => {
    await run([...IMAGE, '--label', 'spring'])
    await run(['models', '--refresh', '--quiet'])
    await run(IMAGE)
    return valuesOf((await run(['spend', '--by', 'label', '--json'])).stdout)
  },
  'dry-run': async ({ run }) => valuesOf((await run([...IMAGE, '--dry-run'])).stdout),
  error: async ({ run, loses }) => {
    const lines = [['status', 'run_none'], ['nosuch'], ['run', 'image', 'x', '--quality', 'hihg']]
    const said = [
      await run(IMAGE, { fetch: loses }),
      await run(IMAGE, { env: { RUSHES_API_KEY: 'rk_wrong' } }),
    ]
    for (const line of lines) said.push(await run([...line, '--json']))
    return said.flatMap(({ stderr }) => valuesOf(stderr))
  },
  warning: async ({ run }) =>
    valuesOf((await run([...IMAGE, '--dry-run', '--input', '{"colour":"red"}'])).stderr),
  debug: async ({ run }) => valuesOf((await run([...IMAGE, '--no-wait', '--debug'])).stderr),
  'batch-row': async ({ run, manifest }) => rowsOf(await run(['batch', manifest, '--json'])),
  'batch-summary': async ({ run, manifest }) => [
    valuesOf((await run(['batch', manifest, '--json'])).stdout).at(-1),
  ],
  'batch-plan': async ({ run, manifest, loses }) => {
    const plans = [await run(['batch', manifest, '--check', '--json'])]
    await run(['batch', manifest, '--only', 'fox'])
    await run(['batch', manifest], { fetch: loses })
    plans.push(await run(['batch', manifest, '--check', '--json']))
    return plans.flatMap(rowsOf)
  },
  'batch-plan-summary': async ({ run, manifest }) => [
    valuesOf((await run(['batch', manifest, '--dry-run', '--json'])).stdout).at(-1),
  ],
  manifest: async ({ manifest }) => [readJson(manifest)],
  lock: async ({ run, fetch, manifest, loses, lock }) => {
    await run(['batch', manifest, '--only', 'fox'])
    await run(['batch', manifest], { fetch: loses })
    const unconfirmed = lock()
    const gone = new HttpFailure('read ECONNRESET', { sent: true, code: 'ECONNRESET' })
    const creates: Fetch = async (request) => {
      if (request.method === 'POST') return fetch(request)
      throw gone
    }
    await run(['batch', manifest, '--resubmit-unconfirmed'], { fetch: creates })
    return [unconfirmed, lock()]
  },
  sidecar: async ({ run, folder }) => {
    await run([...IMAGE, '-o', `${folder}/a.png`, '--sidecar'])
    return [readJson(`${folder}/a.png.json`)]
  },
  models: async ({ run }) => valuesOf((await run(['models', '--json'])).stdout),
  model: async ({ run }) => [
    ...valuesOf((await run(['models', 'video', '--json'])).stdout),
    ...valuesOf((await run(['models', 'image', '--json'])).stdout),
  ],
  'model-document': async ({ run, folder }) => {
    const file = join(folder, 'still-2.yaml')
    writeFileSync(file, 'name: acme/still-2\nkind: image\nprice: { run: 2 }\ndefault: true\n')
    await run(['models', 'add', file])
    return valuesOf((await run(['models', 'acme/still-2', '--json'])).stdout)
  },
  'models-change': async ({ run }) => {
    const added = await run(['models', 'add', '-', '--json'], { stdin: '{"name":"a/b","kind":"image"}' })
    return [added, await run(['models', 'remove', 'a/b', '--json'])].flatMap(({ stdout }) => valuesOf(stdout))
  },
  'models-import': async () => {
    const fetch = createHostedApis([FAL_SCHEMA, { status: 200, body: schemaOf('fal-flux-dev') }]).fetch
    const options = { home: temporaryFolder(), fetch }
    const line = ['models', 'import', 'fal:fal-ai/flux/dev', '--json']
    return [await runCli(line, options), await runCli([...line, '--check'], options)].flatMap(({ stdout }) =>
      valuesOf(stdout),
    )
  },
  'models-search': async () => {
    const body = { models: [{ endpoint_id: 'fal-ai/flux/dev', metadata: { category: 'text-to-image' } }] }
    const { fetch } = createHostedApis(
      [FAL_PRICES, priceOf('fal-ai/flux/dev', 0.025)],
      [FAL_MODELS, { status: 200, body }],
    )
    return valuesOf((await runCli(['models', 'search', 'flux', '--json'], { fetch })).stdout)
  },
  doctor: async ({ run }) => [
    ...valuesOf((await run(['doctor', '--json'])).stdout),
    ...valuesOf((await run(['doctor', '--json', '--local'])).stdout),
  ],
  serve: async ({ home }) => {
    const started = async (...words: readonly string[]) => {
      const interrupts = createInterrupts()
      interrupts.interrupt('SIGTERM')
      const { stdout } = await runCli(['serve', '--port', '0', '--json', ...words], { home, interrupts })
      return valuesOf(stdout)
    }
    // The key is shown on the first start alone.
    return [...(await started()), ...(await started('--metrics-port', '0'))]
  },
  'config-list': async ({ run }) => {
    await run(['config', 'set', 'models.image', 'acme/still-1'])
    return valuesOf((await run(['config', 'list', '--json'])).stdout)
  },
  'config-origins': async ({ run }) => {
    await run(['config', 'set', 'prices', '{"acme/still-1": {"run": 0.04}}'])
    return valuesOf((await run(['config', 'list', '--show-origin', '--json'])).stdout)
  },
  'profile-list': async ({ run }) => valuesOf((await run(['profile', 'list', '--json'])).stdout),
  'config-get': async ({ run }) => {
    await run(['config', 'set', 'timeout', '5m'])
    return valuesOf((await run(['config', 'get', 'timeout', '--json'])).stdout)
  },
  'config-path': async ({ run }) => valuesOf((await run(['config', 'path', '--json'])).stdout),
  'admin-account': async (place) => [
    ...(await administered(place, 'account', 'list')),
    ...(await administered(place, 'credits', 'add', 'default', '5')),
  ],
  'admin-key': async (place) => {
    const terms = ['--quota', '3', '--spend-limit', '9', '--allow-ip', '::1', '--expires', '1d']
    await administered(place, 'key', 'set', 'first', ...terms)
    return await administered(place, 'key', 'list')
  },
  'admin-key-log': async (place) => {
    await administered(place, 'key', 'set', 'first', '--quota', '3')
    return await administered(place, 'key', 'log')
  },
  'admin-new-key': (place) => administered(place, 'key', 'create', '--account', 'default'),
  'admin-user': async (place) => {
    await administered(place, 'user', 'add', 'ann@example.com', '--account', 'default')
    const listed = await administered(place, 'user', 'list')
    return [...listed, ...(await administered(place, 'user', 'remove', 'ann@example.com'))]
  },
  'admin-user-link': async (place) => {
    const added = await administered(place, 'user', 'add', 'ann@example.com', '--account', 'default')
    return [...added, ...(await administered(place, 'user', 'link', 'ann@example.com'))]
  },
  'admin-credits': async (place) => {
    await place.run([...IMAGE, '--no-wait'])
    return await administered(place, 'credits', 'list', 'default')
  },
  'admin-run': async (place) => {
    const [{ id }] = valuesOf((await place.run([...IMAGE, '--no-wait'])).stdout) as [{ id: string }]
    return await administered(place, 'run', 'cancel', id)
  },
  'admin-backup': (place) => administered(place, 'backup', join(place.folder, 'backup.db')),
  'admin-verify': (place) => administered(place, 'verify'),
  forget: async ({ run, loses }) => {
    await run(IMAGE, { fetch: loses })
    const [{ key }] = valuesOf((await run(['list', '--json'])).stdout) as [{ key: string }]
    return valuesOf((await run(['forget', key, '--yes', '--json'])).stdout)
  },
}

const rowsOf = ({ stdout }: Ran): readonly unknown[] => valuesOf(stdout).slice(0, -1)

const known = new Map<string, Promise<readonly unknown[]>>()

/** What was printed of a schema, by one place for all tests. */
function met(name: string): Promise<readonly unknown[]> {
  const values = known.get(name) ?? createPlace().then(MET[name])
  known.set(name, values)
  return values
}

describe.each(Object.keys(MET))('%s', (name) => {
  it('accepts the printed JSON, but not with a missing or unknown key', async () => {
    const values = await met(name)
    expect(values.length).toBeGreaterThan(0)
    for (const value of values) expectToFit(name, value)
  })
})

describe('the collected output', () => {
  it('covers each variant of an object', async () => {
    const lists = (await met('list')) as readonly Record<string, unknown>[]
    expect(lists.map(({ status }) => status).sort()).toEqual(['queued', 'succeeded', 'unconfirmed'])
    const [first, second] = (await met('serve')) as readonly object[]
    expect([Object.keys(first ?? {}), Object.keys(second ?? {})]).toEqual([
      ['url', 'role', 'data', 'api_key', 'models'],
      ['url', 'role', 'data', 'models', 'metrics_url'],
    ])
    const locks = (await met('lock')) as readonly {
      runs: Record<string, { pending?: { state: string } }>
    }[]
    expect(locks.map(({ runs }) => runs.hen?.pending?.state)).toEqual(['unconfirmed', 'accepted'])
  })

  it('fails every test that prints JSON outside its schema', () => {
    const error = { code: 'usage', message: 'x', hint: null, http_status: null, exit_code: 2, run_id: null }
    const said = (stderr: string, stdout = '') => misfitsOf(['status', 'a', '--json'], { stdout, stderr })
    expect(said(`${JSON.stringify({ error })}\n`)).toEqual([])
    expect(said(`${JSON.stringify({ error: { ...error, exit_code: 99 } })}\n`)).not.toEqual([])
    expect(said('warning: plain words\n')).not.toEqual([])
    expect(said('', '{"id":"a"}\n')).not.toEqual([])
    expect(misfitsOf(['status', 'a'], { stdout: 'x', stderr: 'y' })).toEqual([])
  })
})

describe('docs/schemas', () => {
  it('contains only valid schemas, which its README lists by title', () => {
    expect([...SCHEMAS.keys()].filter((name) => name !== 'admin-migrate').sort()).toEqual(
      Object.keys(MET).sort(),
    )
    const titles = [...SCHEMAS].map(([name, { title }]) => [name, title])
    const rows = read('docs/schemas/README.md').matchAll(/^\| \[(.+)\.json\]\(\1\.json\) \| (.+) \|$/gm)
    const listed = [...rows].map(([, name, of = '']) => [name, `rushes: ${of.replace(/[`\\]/g, '')}`])
    expect(listed.sort()).toEqual(titles.sort())
    for (const name of SCHEMAS.keys()) expect(validatorOf(name)).toBeTypeOf('function')
  })

  it('contains a schema for each command that prints JSON', async () => {
    const silent = [
      'login',
      'logout',
      'completion',
      'mcp',
      'config set',
      'config unset',
      'profile use',
      'help',
    ]
    const lines = (await everyCommand())
      .filter((command) => command.commands.length === 0 && command.parent !== null)
      .map((command) => fullName(command).replace(/^rushes /, ''))
      .filter((line) => !silent.some((word) => line.startsWith(word)))
    expect(lines.length).toBeGreaterThan(30)
    const names = lines.map((line) => [line, nameOfAnswer([...line.split(' '), '--json'], {})] as const)
    expect(names.filter(([, name]) => !SCHEMAS.has(name))).toEqual([])
  })

  it('contains each exit code and each setting', () => {
    const text = (name: string) => JSON.stringify(SCHEMAS.get(name))
    const codes = Object.values(EXIT).filter((code) => code !== EXIT.ok)
    expect(text('error')).toContain(`"enum":[${codes}]`)
    expect(CONFIG_KEYS.filter((key) => !text('config-list').includes(`"${key}":`))).toEqual([])
  })
})
