import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { hashOfKey } from '../../src/service/rules/secrets.js'
import { ANN } from '../support/console.js'
import { type CommandLine, createCliService, dataWords, openStoreOf, wordsOf } from '../support/index.js'
import { storedText } from '../support/test-database.js'

async function createAdmin() {
  const service = await createCliService()
  const admin = (line: CommandLine) => service.run(['admin', ...wordsOf(line), ...dataWords(service)])
  const add = (email: string, ...words: string[]) =>
    admin(['user', 'add', email, '--account', 'default', ...words])
  return { service, admin, add }
}

const LINK = /^http:\/\/127\.0\.0\.1:7878\/link\/([\w-]{43})\n$/
const tokenOf = (link: string): string => link.trimEnd().split('/').at(-1) ?? ''

it('admin user adds a user, and prints a link that signs in once, within 15 minutes', async () => {
  const { service, add } = await createAdmin()
  const { code, stdout, stderr } = await add('  Ann@Example.COM ')
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(LINK) })
  expect(stderr).toBe(
    'Added ann@example.com to account default. Single-use link; expires in 15 minutes. They set a password there. If the service has another URL, add --public-url.\n',
  )
  const token = tokenOf(stdout)
  expect(await storedText(service)).not.toContain(token)
  const store = await openStoreOf(service)
  const nowMs = service.clock.now()
  expect(await store.useLink(hashOfKey(token), nowMs + 15 * 60_000)).toBeUndefined()
  expect(await store.useLink(hashOfKey(token), nowMs + 15 * 60_000 - 1)).toMatchObject({
    email: ANN,
    account: 'default',
  })
  expect(await store.useLink(hashOfKey(token), nowMs)).toBeUndefined()
  await store.close()
})

it('admin user adds a user to the only account without --account', async () => {
  const { admin } = await createAdmin()
  expect((await admin('user add ann@example.com')).stderr).toContain('to account default.')
  await admin('account create acme')
  expect(await admin('user add bob@example.com')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Missing --account.'),
  })
})

it('the link of admin user begins with the URL of the service', async () => {
  const { add, admin } = await createAdmin()
  expect((await add('a@example.com', '--public-url', 'https://rushes.example.com/media//')).stdout).toMatch(
    /^https:\/\/rushes\.example\.com\/media\/link\/[\w-]{43}\n$/,
  )
  const again = await admin('user link A@example.com --public-url http://[::1]:80')
  expect(again.stdout).toMatch(/^http:\/\/\[::1\]:80\/link\/[\w-]{43}\n$/)
  expect(again.stderr).toMatch(/Single-use link for a@example\.com; expires in 15 minutes/)
})

it('the link of admin user begins with the URL of the last start without --public-url', async () => {
  const { service, admin, add } = await createAdmin()
  const unknown = await add('a@example.com')
  expect(unknown.stdout).toMatch(/^http:\/\/127\.0\.0\.1:7878\/link\//)
  expect(unknown.stderr).toContain('If the service has another URL, add --public-url.')
  writeFileSync(join(service.dataFolder, 'public-url'), 'https://rushes.example.com/media\n')
  const known = await admin('user link a@example.com')
  expect(known.stdout).toMatch(/^https:\/\/rushes\.example\.com\/media\/link\//)
  expect(known.stderr).not.toContain('--public-url')
})

it('admin user lists and removes users', async () => {
  const { admin, add } = await createAdmin()
  await add(ANN)
  await admin('account create acme')
  await admin('user add bob@example.com --account acme')
  const rows = async () => (await admin('user list')).stdout.replaceAll(/\S+Z/g, 'T')
  expect(await rows()).toMatch(
    /\d\tann@example\.com\tdefault\t-\t0\t-\tT\n\d\tbob@example\.com\tacme\t-\t0\t-\tT\n$/,
  )
  const removed = await admin('user remove ANN@example.com')
  expect(removed).toMatchObject({ code: 0, stdout: '' })
  expect(removed.stderr).toMatch(/Removed ann@example\.com\. Their sessions and links have ended/)
  expect(await rows()).not.toContain('ann@')
})

it('admin user prints JSON with the link', async () => {
  const { add, admin } = await createAdmin()
  const added = JSON.parse((await add(ANN, '--json')).stdout)
  expect(added).toMatchObject({ email: ANN, account: 'default', has_password: false, sessions: 0 })
  expect(`${added.link}\n`).toMatch(LINK)
  const linked = JSON.parse((await admin(`user link ${ANN} --json`)).stdout)
  expect(tokenOf(linked.link)).not.toBe(tokenOf(added.link))
})

describe('admin user, wrongly used', () => {
  let admin: Awaited<ReturnType<typeof createAdmin>>['admin']
  const list = async () => (await admin('user list')).stdout
  let before: string
  beforeAll(async () => {
    const created = await createAdmin()
    admin = created.admin
    await created.add(ANN)
    await admin('account create acme')
    before = await list()
  })

  const LONG = `${'a'.repeat(250)}@b.de`
  it.each<[readonly string[], RegExp]>([
    [['add', 'x@example.com'], /Missing --account\.\n.*rushes admin account list --data \S+`\.\n$/],
    [
      ['add', 'x@example.com', '--account', 'nobody'],
      /Account nobody does not exist\.[\s\S]*rushes admin account list/,
    ],
    [
      ['add', 'ANN@example.com', '--account', 'default'],
      /User ann@example\.com already exists\.[\s\S]*rushes admin user link ann@example\.com/,
    ],
    [
      ['add', 'x@example.com', '--account', 'default', '--public-url', 'example.com'],
      /--public-url: "example\.com" is not an http or https URL/,
    ],
    [
      ['link', ANN, '--public-url', 'https://example.com/?a=1'],
      /must not contain a query or a fragment[\s\S]*https:\/\/example\.com\/runs/,
    ],
    ...['', 'ann', 'a@b@c', 'a\u200b@b', LONG].map((email): [readonly string[], RegExp] => [
      ['add', email, '--account', 'default'],
      /is not a valid email\.[\s\S]*ann@example\.com/,
    ]),
    [
      ['link', 'nobody@example.com'],
      /User nobody@example\.com does not exist\.[\s\S]*rushes admin user list/,
    ],
  ])('%j is exit 2', async (words, says) => {
    const { code, stdout, stderr } = await admin(['user', ...words])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(says)
  })

  it('has changed nothing', async () => expect(await list()).toBe(before))
})
