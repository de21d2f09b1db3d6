import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/host/database.js'
import { hashOfKey } from '../../src/service/rules/secrets.js'
import { SQLITE_SCRIPTS } from '../../src/service/store/sqlite/index.js'
import {
  type CommandLine,
  createCliService,
  createHome,
  dataWords,
  runCli,
  temporaryFolder,
  wordsOf,
} from '../support/index.js'
import { runSql, storedText, usesPostgres } from '../support/test-database.js'

/** `rushes admin` on the data folder of a service that runs beside it. */
async function createAdmin(options = {}) {
  const service = await createCliService(options)
  const admin = (line: CommandLine) => service.run(['admin', ...wordsOf(line), ...dataWords(service)])
  const key = async (line: string) => (await admin(`key create ${line}`)).stdout.trimEnd()
  const image = async (apiKey: string, flags = '') =>
    await service.run(`run image "a fox" --no-wait ${flags}`, { env: { RUSHES_API_KEY: apiKey } })
  return { service, admin, key, image }
}

it('admin, beside a running service makes an account and a key, and the key works at once', async () => {
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
  expect((await image(key)).code).toBe(0)
})

it('admin, beside a running service names the data of the line in each command that it suggests', async () => {
  const data = join(temporaryFolder(), 'my data')
  const where = ['--data', data]
  const made = await runCli(['admin', 'account', 'create', 'acme', ...where])
  expect(made.stderr).toContain(`\`rushes admin key create --account acme --data '${data}'\``)
  const refused = await runCli(['admin', 'key', 'list', '--account', 'none', ...where])
  expect(refused.stderr).toContain(`\`rushes admin account list --data '${data}'\``)
  // The variable is there for the next command too.
  const env = { RUSHES_DATA: data }
  const again = await runCli(['admin', 'key', 'list', '--account', 'none'], { env })
  expect(again.stderr).toContain('`rushes admin account list`')
})

it('admin, beside a running service lets a key be limited, disabled and freed again', async () => {
  const { admin, key, image } = await createAdmin()
  await admin('account create acme --balance 100')
  const ci = await key('--account acme --name ci --quota 0 --spend-limit 0')
  const outcome = async () => {
    const { code, stderr } = await image(ci, '--json')
    return code === 0 ? 'created' : JSON.parse(stderr).error.code
  }
  expect(await outcome()).toBe('api_key_spend_limit_exceeded')
  const state = async () => (await admin('key list --account acme')).stdout.split('\t')[3]
  expect(await state()).toBe('spend limit reached')
  await admin('key set ci --spend-limit none')
  expect(await outcome()).toBe('USAGE_EXCEEDED')
  expect(await state()).toBe('quota used up')
  const networks = '--allow-ip 192.0.2.0/24 --allow-ip 2001:db8::/32'
  await admin(`key set 2 --quota none ${networks}`)
  expect(await outcome()).toBe('ip_not_allowed')
  await admin('key set ci --allow-ip none')
  await admin('key disable ci')
  expect(await outcome()).toBe('invalid_api_key')
  await admin('key enable ci')
  await admin('account ban acme')
  expect(await outcome()).toBe('account_banned')
  await admin('account unban acme')
  expect(await outcome()).toBe('created')
})

it('admin, beside a running service gives a key a rate and an expiry of its own', async () => {
  const { admin, key } = await createAdmin()
  await key('--account default --rate 100/10s --expires 1m')
  const terms = async () => {
    const { rate, expires_at } = JSON.parse((await admin('key list --json')).stdout.split('\n')[1] ?? '')
    return [rate, expires_at]
  }
  expect(await terms()).toEqual(['100/10s', expect.stringMatching(/^2026-01-01T00:01/)])
  await admin('key set 2 --rate 600/1m')
  expect((await terms())[0]).toBe('600/1m')
  await admin('key set 2 --rate none --expires none')
  expect(await terms()).toEqual(['20/10s', null])
})

it('admin, beside a running service lists as rows for a pipe, as a table for a terminal, as JSON', async () => {
  const { service, admin, key, image } = await createAdmin()
  await admin('account create acme --balance 5')
  await image(await key('--account acme --spend-limit 10 --quota 9 --allow-ip 127.0.0.1'))
  expect((await admin('account list')).stdout.replaceAll(/\S+Z/g, 'T')).toBe(
    '1\tdefault\t10000\tactive\t1\t0\tT\n2\tacme\t4\tactive\t1\t1\tT\n',
  )
  expect((await admin('key list --account acme')).stdout).toMatch(
    /^2\tacme\tkey\tactive\t1\/10\t1\/9\t127\.0\.0\.1\tnever\t\S+Z\t20\/10s\trk_[\w-]{6}\t\S+\n$/,
  )
  expect((await admin('credits list acme')).stdout).toMatch(
    /^3\t-1\tcharge\trun_\w+\t2\t\S+Z\n2\t\+5\tadded\t-\t-\t\S+Z\n$/,
  )
  const table = await service.run(['admin', 'account', 'list', ...dataWords(service)], {
    tty: { stdout: true, stderr: true },
  })
  expect(table.stdout.split('\n')[0]).toMatch(/^ID +ACCOUNT +BALANCE +STATE +KEYS +RUNS +CREATED$/)
  const listed = async (...words: string[]) =>
    JSON.parse((await admin([...words, '--json'])).stdout.split('\n')[0] ?? '')
  expect(await listed('account', 'list')).toMatchObject({ id: 1, name: 'default', balance: 10_000 })
  expect(await listed('key', 'list', '--account', 'acme')).toMatchObject({
    ...{ spend_limit: 10, spent: 1, quota: 9, used: 1, allowed_ips: ['127.0.0.1'] },
  })
  expect(await listed('credits', 'list', 'acme')).toMatchObject({ kind: 'charge', amount: -1, key: 2 })
})

it('admin, beside a running service lists the runs of all accounts, of one, and of one status', async () => {
  const { admin, key, image } = await createAdmin()
  await admin('account create acme --balance 5')
  await image(await key('--account acme'))
  await image(await key('--account default'), '-n 2')
  const rows = async (...words: string[]) =>
    (await admin(['run', 'list', ...words])).stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t'))
  const all = await rows()
  expect(all.map(([, account, , kind]) => [account, kind])).toEqual([
    ['default', 'image'],
    ['default', 'image'],
    ['acme', 'image'],
  ])
  expect(await rows('--account', 'acme', '--limit', '1')).toEqual([all[2]])
  expect((await admin('run list --status failed')).stdout).toBe('')
  const [json] = (await admin('run list --json')).stdout.split('\n')
  expect(JSON.parse(json ?? '')).toMatchObject({
    account: 'default',
    prompt: 'a fox',
    price: 1,
    refunded: false,
  })
  expect(await admin('run list --account acne')).toMatchObject({ code: 2, stdout: '' })
  expect((await admin('run list --status gone')).code).toBe(2)
})

it('admin, beside a running service shows a key once: neither the data nor anything else said holds it', async () => {
  const { service, admin } = await createAdmin()
  const made = await admin('key create --account default --json --debug')
  const { api_key: key, ...rest } = JSON.parse(made.stdout)
  expect(rest).toMatchObject({ id: 2, account: 'default', name: 'key', spend_limit: null })
  expect(made.stderr).not.toContain(key)
  for (const words of [['list'], ['list', '--json']])
    expect((await admin(['key', ...words])).stdout).not.toContain(key)
  const stored = await storedText(service)
  expect(stored).toContain(hashOfKey(key))
  expect(stored).not.toContain(key)
})

it('admin, beside a running service adds everything up anew, and fails when it does not fit', async () => {
  const { service, admin } = await createAdmin()
  expect(await admin('verify')).toMatchObject({ code: 0, stdout: 'ok\n' })
  expect(JSON.parse((await admin('verify --json')).stdout)).toEqual({
    ...{ ok: true, accounts: 1, entries: 1, runs: 0, credits: 10_000, problems: [], outcome_unknown: [] },
  })
  await runSql(service, 'UPDATE accounts SET balance = 7')
  const found = await admin('verify')
  expect(found).toMatchObject({
    code: 8,
    stdout: 'Account default has a balance of 7, and its entries sum to 10000.\n',
  })
  expect(found.stderr).toContain('1 problem found in the database')
  const json = await admin('verify --json')
  expect(json.code).toBe(8)
  expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, problems: [expect.any(String)] })
  expect(JSON.parse(json.stderr).error.code).toBe('service_error')
})

describe('admin, wrongly used', () => {
  let shared: Awaited<ReturnType<typeof createAdmin>>
  const listAll = async () =>
    (await shared.admin('account list')).stdout + (await shared.admin('key list')).stdout
  let before: string
  beforeAll(async () => {
    shared = await createAdmin()
    before = await listAll()
  })

  it.each<[CommandLine, RegExp]>([
    ['account create default', /Account default already exists/],
    [['account', 'create', 'two\nlines'], /not a valid name for an account/],
    [['account', 'create', 'a\u202eb'], /not a valid name for an account[\s\S]*invisible characters/],
    ['account create x --balance -1', /--balance: "-1" is not a whole number from 0/],
    ['key create', /Missing --account/],
    ['key create --account nobody', /Account nobody does not exist/],
    ['key create --account default --quota many', /--quota: "many"/],
    [
      'key create --account default --expires 90',
      /"90" is not a valid duration\.\n {2}Examples: 90d, 12h, 2030-01-31\.\n/,
    ],
    ['key disable 7', /Key 7 does not exist/],
    ['key set first', /Nothing to change/],
    ['key set first --allow-ip none --allow-ip ::1', /"none" is not an IP address/],
    ['key create --account default --allow-ip ""', /--allow-ip has no value/],
    ['credits add default much', /<n>: "much" is not a whole number/],
    ['credits add default 0', /number of credits is 0/],
    ['credits list nobody', /Account nobody does not exist/],
    ['run refund nope', /Run nope does not exist[\s\S]*--data and --database/],
    ['verify --local', /cannot be used with --local or --base-url/],
  ])('%s is exit 2', async (words, says) => {
    const { code, stdout, stderr } = await shared.admin(words)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(says)
    expect(shared.service.complaints).toEqual([])
  })

  it('has changed nothing', async () => expect(await listAll()).toBe(before))

  it('takes credits away down to nothing', async () => {
    const { service } = await createAdmin()
    const add = (n: string) =>
      service.run(['admin', 'credits', 'add', ...dataWords(service), 'default', '--', n])
    expect(await add('-10001')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('default has 10000 credits, so 10001 cannot be removed'),
    })
    expect(await add('-10000')).toMatchObject({ code: 0, stdout: '0\n' })
  })

  it('wants the number where several keys have one name', async () => {
    const { admin, key } = await createAdmin()
    for (let n = 0; n < 2; n++) await key('--account default --name ci')
    const { code, stderr } = await admin('key disable ci')
    expect(code).toBe(2)
    expect(stderr).toContain('More than one key is named ci: 2, 3.')
  })

  it.skipIf(usesPostgres)(
    'makes no data folder where it only looks, and a whole one where it makes an account',
    async () => {
      const { home, run } = createHome({ env: {} })
      const data = join(home, 'data')
      expect(await run(`admin account list --data ${data}`)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('contains no data of a local service'),
      })
      expect(existsSync(data)).toBe(false)
      expect((await run(`admin account create acme --data ${data}`)).code).toBe(0)
      expect((await run(`admin account list --data ${data}`)).stdout).toMatch(/^1\tacme\t0\t/)
    },
  )
})

describe.skipIf(usesPostgres)('admin backup, beside a running service', () => {
  let shared: Awaited<ReturnType<typeof createAdmin>>
  beforeAll(async () => {
    shared = await createAdmin()
  })

  it('writes a private copy with everything, and prints its name', async () => {
    const { service, admin, image } = await createAdmin()
    await image(service.apiKey)
    const file = join(temporaryFolder(), "it's a backup.db")
    expect(await admin(['backup', file])).toMatchObject({ code: 0, stdout: `${file}\n` })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(dirname(file))).toEqual([basename(file)])
    const json = await admin(['backup', `${file}.2`, '--json'])
    expect(JSON.parse(json.stdout)).toEqual({ path: `${file}.2`, bytes: statSync(`${file}.2`).size })
  })

  it.each<[name: string, target: (folder: string) => string, says: RegExp]>([
    ['a file that exists', (folder) => join(folder, 'there.db'), /there\.db already exists\./],
    ['a folder', (folder) => folder, /already exists\./],
    ['no folder', (folder) => join(folder, 'no', 'b.db'), /Cannot write the backup .*no such file/],
  ])('refuses %s, and leaves nothing', async (_name, target, says) => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'there.db'), 'kept')
    const { code, stdout, stderr } = await shared.admin(['backup', target(folder)])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(says)
    expect(readdirSync(folder)).toEqual(['there.db'])
    expect(readFileSync(join(folder, 'there.db'), 'utf8')).toBe('kept')
  })
})

describe.skipIf(usesPostgres)('admin on a file that is no database of a service', () => {
  const damages: [name: string, damage: (path: string) => void, says: RegExp][] = [
    ['text', (path) => writeFileSync(path, 'no database '.repeat(100)), /is damaged, or not a database/],
    ['an empty file', (path) => writeFileSync(path, ''), /is empty: the accounts and runs/],
    [
      'another database',
      (path) => openDatabase({ path, migrations: ['CREATE TABLE notes (text)'] }).close(),
      /is the database of another program/,
    ],
  ]
  it.each(damages)('%s is exit 2, says what to do, and stays as it is', async (_name, damage, says) => {
    const data = temporaryFolder()
    const path = join(data, 'service.db')
    damage(path)
    const before = readFileSync(path)
    for (const words of [['verify'], ['account', 'list'], ['backup', join(data, 'b.db')]]) {
      const { code, stdout, stderr } = await runCli(['admin', ...words, '--data', data])
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toMatch(says)
      expect(stderr).toMatch(/docs\/operations\.md/)
    }
    expect(readFileSync(path).equals(before)).toBe(true)
    expect(existsSync(join(data, 'b.db'))).toBe(false)
  })

  it('a page that a command meets is exit 2', async () => {
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
    const { code, stdout, stderr } = await runCli(`admin account list --data ${data}`)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/service\.db is damaged/)
  })
})
