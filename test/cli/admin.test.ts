import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/host/database.js'
import { type Engine, OutcomeUnknown } from '../../src/service/engines/engine.js'
import { hashOfKey } from '../../src/service/rules/secrets.js'
import { SQLITE_SCRIPTS } from '../../src/service/store/sqlite/index.js'
import {
  type CommandLine,
  createCliService,
  createHome,
  lines,
  objects,
  outputOf,
  type RunAtService,
  runCli,
  temporaryFolder,
  usageErrorOf,
  wordsOf,
} from '../support/index.js'
import { dataWords, runSql, storedText, usesPostgres } from '../support/test-database.js'

/** `rushes admin` on the data folder of a service that runs beside it. */
async function createAdmin(options = {}) {
  const service = await createCliService(options)
  const admin = (line: CommandLine, options: RunAtService = {}) =>
    service.run(['admin', ...wordsOf(line), ...dataWords(service)], options)
  const key = async (line: string) => outputOf(await admin(`key create ${line}`)).trimEnd()
  const image = (apiKey: string, flags = '') =>
    service.run(`run image "a fox" --no-wait ${flags}`, { env: { RUSHES_API_KEY: apiKey } })
  return { service, admin, key, image }
}

it('admin creates an account and a key beside a running service, and the key works at once', async () => {
  const { admin, image } = await createAdmin()
  const account = await admin('account create acme --balance 2')
  expect(account).toMatchObject({ code: 0, stdout: 'acme\n' })
  expect(account.stderr).toContain('rushes admin key create --account acme')
  const made = await admin('key create --account acme --name ci')
  expect(made.stdout).toMatch(/^rk_[\w-]{43}\n$/)
  expect(made.stderr).toMatch(/Created key 2 \(ci\) of acme\. The key is shown only once/)
  const key = made.stdout.trimEnd()
  expect(await image(key, '-n 3')).toMatchObject({
    code: 5,
    stdout: expect.stringMatching(/^(run_\w+\n){2}$/),
  })
  const topped = await admin('credits add acme 1')
  expect(topped).toMatchObject({ code: 0, stdout: '1\n', stderr: '' })
  outputOf(await image(key))
})

it('admin names the data of the line in each command that it suggests', async () => {
  const data = join(temporaryFolder(), 'my data')
  const made = await runCli(['admin', 'account', 'create', 'acme', '--data', data])
  expect(made.stderr).toContain(`\`rushes admin key create --account acme --data '${data}'\``)
  const refused = await runCli(['admin', 'key', 'list', '--account', 'none', '--data', data])
  expect(refused.stderr).toContain(`\`rushes admin account list --data '${data}'\``)
  // The variable is there for the next command too.
  const again = await runCli('admin key list --account none', { env: { RUSHES_DATA: data } })
  expect(again.stderr).toContain('`rushes admin account list`')
})

it('admin limits and disables a key, bans an account, and takes each of it back', async () => {
  const { admin, key, image } = await createAdmin()
  await admin('account create acme --balance 100')
  const ci = await key('--account acme --name ci --quota 0 --spend-limit 0')
  const outcome = async () => {
    const { code, stderr } = await image(ci, '--json')
    return code === 0 ? 'created' : JSON.parse(stderr).error.code
  }
  expect(await outcome()).toBe('api_key_spend_limit_exceeded')
  const state = async () => outputOf(await admin('key list --account acme')).split('\t')[3]
  expect(await state()).toBe('spend limit reached')
  await admin('key set 2 --spend-limit none')
  expect(await outcome()).toBe('USAGE_EXCEEDED')
  expect(await state()).toBe('quota used up')
  const networks = '--allow-ip 192.0.2.0/24 --allow-ip 2001:db8::/32'
  await admin(`key set 2 --quota none ${networks}`)
  expect(await outcome()).toBe('ip_not_allowed')
  await admin('key set 2 --allow-ip none')
  await admin('key disable 2')
  expect(await outcome()).toBe('invalid_api_key')
  await admin('key enable 2')
  await admin('account ban acme')
  expect(await outcome()).toBe('account_banned')
  await admin('account unban acme')
  expect(await outcome()).toBe('created')
})

it('admin gives a key its own rate and expiry', async () => {
  const { admin, key } = await createAdmin()
  await key('--account default --rate 100/10s --expires 1m')
  const terms = async () => {
    const [, { rate, expires_at }] = objects(outputOf(await admin('key list --json')))
    return [rate, expires_at]
  }
  expect(await terms()).toEqual(['100/10s', expect.stringMatching(/^2026-01-01T00:01/)])
  await admin('key set 2 --rate 600/1m')
  expect((await terms())[0]).toBe('600/1m')
  await admin('key set 2 --rate none --expires none')
  expect(await terms()).toEqual(['20/10s', null])
})

it('admin prints its lists as rows in a pipe, as a table on a terminal, and as JSON', async () => {
  const { admin, key, image } = await createAdmin()
  await admin('account create acme --balance 5')
  await image(await key('--account acme --spend-limit 10 --quota 9 --allow-ip 127.0.0.1'))
  expect(outputOf(await admin('account list')).replaceAll(/\S+Z/g, 'T')).toBe(
    '1\tdefault\t10000\tactive\t1\t0\tT\n2\tacme\t4\tactive\t1\t1\tT\n',
  )
  expect(outputOf(await admin('key list --account acme'))).toMatch(
    /^2\tacme\tkey\tactive\t1\/10\t1\/9\t127\.0\.0\.1\tnever\t20\/10s\n$/,
  )
  const table = await admin('account list', { tty: { stdout: true, stderr: true } })
  expect(lines(table.stdout)[0]).toMatch(/^ID +ACCOUNT +BALANCE +STATE +KEYS +RUNS +CREATED$/)
  const first = async (line: string) => objects(outputOf(await admin(`${line} --json`)))[0]
  expect(await first('account list')).toMatchObject({ id: 1, name: 'default', balance: 10_000 })
  expect(await first('key list --account acme')).toMatchObject({
    ...{ spend_limit: 10, spent: 1, quota: 9, used: 1, allowed_ips: ['127.0.0.1'] },
  })
})

it('admin lists the runs of all accounts, of one, and of one status', async () => {
  const { admin, key, image } = await createAdmin()
  await admin('account create acme --balance 5')
  await image(await key('--account acme'))
  await image(await key('--account default'), '-n 2')
  const rows = async (flags = '') => lines(outputOf(await admin(`run list ${flags}`)))
  const all = await rows()
  expect(all).toEqual([
    expect.stringMatching(/\tdefault\t.*\timage\t/),
    expect.stringMatching(/\tdefault\t/),
    expect.stringMatching(/\tacme\t/),
  ])
  expect(await rows('--account acme')).toEqual([all[2]])
  expect(await rows('--status failed')).toEqual([])
  const [object] = objects(outputOf(await admin('run list --json')))
  expect(object).toMatchObject({ account: 'default', prompt: 'a fox', price: 1, refunded: false })
  for (const flags of ['--account acne', '--status gone']) usageErrorOf(await admin(`run list ${flags}`))
})

it('admin lists a run of one status behind 50,000 newer ones of another', async () => {
  const { admin, service } = await createAdmin()
  await runSql(
    service,
    `INSERT INTO runs (id, account_id, model, kind, input, price, status, created_at)
     WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 50002)
     SELECT 'run_' || n, 1, 'm', 'image', '{}', 0, CASE n WHEN 1 THEN 'canceled' ELSE 'failed' END, 1 FROM numbers`,
  )
  expect(outputOf(await admin('run list --status canceled'))).toContain('run_1\t')
  expect(lines(outputOf(await admin('run list')))).toHaveLength(100)
})

it('admin prints the decision on a run of unknown outcome, also as JSON', async () => {
  const engine: Engine = {
    async render({ save }) {
      const place = { type: 'videos', origin: 'http://127.0.0.1:1', costs: true }
      await save?.({ intent: { id: 'i', sentAtMs: 0, endpoint: 'draw', place } })
      throw new OutcomeUnknown('The answer was lost.')
    },
  }
  const { admin, service } = await createAdmin({ engine })
  const ended = await service.run('run image "a fox" -n 2 --json')
  const [first, second] = objects(ended.stdout).map(({ id }) => String(id))
  // runCli checks the lines against the published schemas.
  expect(objects(outputOf(await admin(`run refund ${first} --json`)))).toEqual([
    { id: first, decision: 'refunded' },
  ])
  expect(objects(outputOf(await admin(`run adopt ${second} job_1 --json`)))).toEqual([
    { id: second, decision: 'adopted', upstream_id: 'job_1' },
  ])
})

it('admin shows a key once: neither the data of the service nor another command has it', async () => {
  const { service, admin } = await createAdmin()
  const made = await admin('key create --account default --json --debug')
  const { api_key: key, ...rest } = JSON.parse(made.stdout)
  expect(rest).toMatchObject({ id: 2, account: 'default', name: 'key', spend_limit: null })
  expect(made.stderr).not.toContain(key)
  for (const line of ['key list', 'key list --json']) expect(outputOf(await admin(line))).not.toContain(key)
  const stored = await storedText(service)
  expect(stored).toContain(hashOfKey(key))
  expect(stored).not.toContain(key)
})

it('admin verify adds all entries, and fails when a balance is another', async () => {
  const { service, admin } = await createAdmin()
  expect(outputOf(await admin('verify'))).toBe('ok\n')
  expect(JSON.parse(outputOf(await admin('verify --json')))).toEqual({
    ...{ ok: true, accounts: 1, entries: 1, runs: 0, credits: 10_000, problems: [], outcome_unknown: [] },
  })
  await runSql(service, 'UPDATE accounts SET balance = 7')
  expect(await admin('verify')).toMatchObject({
    code: 8,
    stdout: 'Account default has a balance of 7, and its entries sum to 10000.\n',
    stderr: expect.stringContaining('1 problem found in the database'),
  })
  const json = await admin('verify --json')
  expect(json.code).toBe(8)
  expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, problems: [expect.any(String)] })
  expect(JSON.parse(json.stderr).error.code).toBe('service_error')
})

describe('a usage error of admin', () => {
  let shared: Awaited<ReturnType<typeof createAdmin>>
  const listAll = async () =>
    outputOf(await shared.admin('account list')) + outputOf(await shared.admin('key list'))
  let before: string
  beforeAll(async () => {
    shared = await createAdmin()
    for (let n = 0; n < 2; n++) await shared.key('--account default --name ci')
    before = await listAll()
  })

  it.each<[CommandLine, RegExp]>([
    ['account create default', /Account default already exists/],
    [['account', 'create', 'a\u202eb'], /not a valid name for an account[\s\S]*invisible characters/],
    ['account create x --balance -1', /--balance: "-1" is not a whole number from 0/],
    ['key create', /Missing --account/],
    ['key create --account nobody', /Account nobody does not exist/],
    [
      'key create --account default --expires 90',
      /"90" is not a valid duration\.\n {2}Examples: 90d, 12h, 2030-01-31\.\n/,
    ],
    ['key disable 7', /Key 7 does not exist/],
    ['key disable cj', /Key cj does not exist/],
    ['key disable ci', /More than one key is named ci: 2, 3\./],
    ['key set first', /Nothing to change/],
    ['key set 1 --allow-ip none --allow-ip ::1', /"none" is not an IP address/],
    ['key create --account default --allow-ip ""', /--allow-ip has no value/],
    ['credits add default much', /<n>: "much" is not a whole number/],
    ['credits add default 0', /number of credits is 0/],
    ['run refund nope', /Run nope does not exist[\s\S]*--data and --database/],
    ['verify --local', /cannot be used with --local or --base-url/],
  ])('says what is wrong, and changes nothing: %s', async (line, message) => {
    expect(usageErrorOf(await shared.admin(line))).toMatch(message)
    expect(shared.service.complaints).toEqual([])
    expect(await listAll()).toBe(before)
  })
})

it('admin takes credits away down to 0', async () => {
  const { service } = await createAdmin()
  const add = (n: string) =>
    service.run(['admin', 'credits', 'add', ...dataWords(service), 'default', '--', n])
  expect(usageErrorOf(await add('-10001'))).toContain('default has 10000 credits, so 10001 cannot be removed')
  expect(outputOf(await add('-10000'))).toBe('0\n')
})

it.skipIf(usesPostgres)('admin creates a data folder for an account, and none for a list', async () => {
  const { home, run } = createHome({ env: {} })
  const data = join(home, 'data')
  const listed = await run(`admin account list --data ${data}`)
  expect(usageErrorOf(listed)).toContain('contains no data of a local service')
  expect(existsSync(data)).toBe(false)
  outputOf(await run(`admin account create acme --data ${data}`))
  expect(outputOf(await run(`admin account list --data ${data}`))).toMatch(/^1\tacme\t0\t/)
})

describe.skipIf(usesPostgres)('admin backup', () => {
  let shared: Awaited<ReturnType<typeof createAdmin>>
  beforeAll(async () => {
    shared = await createAdmin()
  })

  it('writes one private file beside a running service, and prints its name', async () => {
    const { admin } = shared
    const file = join(temporaryFolder(), "it's a backup.db")
    expect(outputOf(await admin(['backup', file]))).toBe(`${file}\n`)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(dirname(file))).toEqual([basename(file)])
    const json = await admin(['backup', `${file}.2`, '--json'])
    expect(JSON.parse(json.stdout)).toEqual({ path: `${file}.2`, bytes: statSync(`${file}.2`).size })
  })

  it.each<[name: string, target: (folder: string) => string, says: RegExp]>([
    ['a file that exists', (folder) => join(folder, 'there.db'), /there\.db already exists\./],
    ['a folder', (folder) => folder, /already exists\./],
    [
      'a file in a missing folder',
      (folder) => join(folder, 'no', 'b.db'),
      /Cannot write the backup .*no such file/,
    ],
  ])('refuses the path of %s, and leaves nothing', async (_name, target, message) => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'there.db'), 'kept')
    expect(usageErrorOf(await shared.admin(['backup', target(folder)]))).toMatch(message)
    expect(readdirSync(folder)).toEqual(['there.db'])
    expect(readFileSync(join(folder, 'there.db'), 'utf8')).toBe('kept')
  })
})

describe.skipIf(usesPostgres)('admin', () => {
  const damages: [name: string, damage: (path: string) => void, says: RegExp][] = [
    ['text', (path) => writeFileSync(path, 'no database '.repeat(100)), /is damaged, or not a database/],
    ['an empty file', (path) => writeFileSync(path, ''), /is empty: the accounts and runs/],
  ]
  it.each(damages)(
    'refuses %s in the place of its database, says what to do, and leaves it',
    async (_name, damage, message) => {
      const data = temporaryFolder()
      const path = join(data, 'service.db')
      damage(path)
      const before = readFileSync(path)
      for (const line of ['verify', 'account list', `backup ${join(data, 'b.db')}`]) {
        const error = usageErrorOf(await runCli(`admin ${line} --data ${data}`))
        expect(error).toMatch(message)
        expect(error).toContain('docs/operations.md')
      }
      expect(readFileSync(path).equals(before)).toBe(true)
      expect(existsSync(join(data, 'b.db'))).toBe(false)
    },
  )

  it('refuses a database with a damaged page that its command reads', async () => {
    const data = temporaryFolder()
    await runCli(`admin account create acme --balance 5 --data ${data}`)
    const path = join(data, 'service.db')
    const database = openDatabase({ path, migrations: SQLITE_SCRIPTS })
    const found = database.get(`SELECT rootpage FROM sqlite_schema WHERE name = 'accounts'`)
    const pageBytes = Number(database.get('PRAGMA page_size')?.page_size)
    database.close()
    const bytes = readFileSync(path)
    const end = Number(found?.rootpage) * pageBytes
    bytes.fill(0x5a, end - pageBytes, end)
    writeFileSync(path, bytes)
    expect(usageErrorOf(await runCli(`admin account list --data ${data}`))).toMatch(/service\.db is damaged/)
  })
})
