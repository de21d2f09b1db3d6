import { beforeAll, describe, expect, it } from 'vitest'
import { hashOfKey } from '../../src/service/rules/secrets.js'
import { ANN } from '../support/console.js'
import { type CommandLine, createCliService, outputOf, usageErrorOf, wordsOf } from '../support/index.js'
import { dataWords, openStoreOf, storedText } from '../support/test-database.js'

async function createAdmin() {
  const service = await createCliService()
  const user = (line: CommandLine) => service.run(['admin', 'user', ...wordsOf(line), ...dataWords(service)])
  const add = (email: string, flags = '') => user(`add "${email}" --account default ${flags}`)
  const createAccount = () => service.run(['admin', 'account', 'create', 'acme', ...dataWords(service)])
  return { service, user, add, createAccount }
}

const LINK = /^http:\/\/127\.0\.0\.1:7878\/link\/([\w-]{43})\n$/
const tokenOf = (link: string): string => link.trimEnd().split('/').at(-1) ?? ''

it('admin user add prints a link that signs in once, within 15 minutes', async () => {
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

it('the link of a user begins with --public-url', async () => {
  const { add, user } = await createAdmin()
  expect(outputOf(await add('a@example.com', '--public-url https://rushes.example.com/media//'))).toMatch(
    /^https:\/\/rushes\.example\.com\/media\/link\/[\w-]{43}\n$/,
  )
  const again = await user('link A@example.com --public-url http://[::1]:80')
  expect(again.stdout).toMatch(/^http:\/\/\[::1\]:80\/link\/[\w-]{43}\n$/)
  expect(again.stderr).toMatch(/Single-use link for a@example\.com; expires in 15 minutes/)
})

it('admin user lists and removes users', async () => {
  const { user, createAccount } = await createAdmin()
  // The one account needs no flag.
  expect((await user(`add ${ANN}`)).stderr).toContain('to account default.')
  await createAccount()
  await user('add bob@example.com --account acme')
  const rows = async () => outputOf(await user('list')).replaceAll(/\S+Z/g, 'T')
  expect(await rows()).toMatch(/\d\tann@example\.com\tdefault\t-\tT\n\d\tbob@example\.com\tacme\t-\tT\n$/)
  const removed = await user('remove ANN@example.com')
  expect(removed).toMatchObject({ code: 0, stdout: '' })
  expect(removed.stderr).toMatch(/Removed ann@example\.com\. Their sessions and links have ended/)
  expect(await rows()).not.toContain('ann@')
})

it('admin user prints the user and the link as JSON', async () => {
  const { add, user } = await createAdmin()
  const added = JSON.parse(outputOf(await add(ANN, '--json')))
  expect(added).toMatchObject({ email: ANN, account: 'default', has_password: false })
  expect(`${added.link}\n`).toMatch(LINK)
  const linked = JSON.parse(outputOf(await user(`link ${ANN} --json`)))
  expect(tokenOf(linked.link)).not.toBe(tokenOf(added.link))
})

describe('a usage error of admin user', () => {
  let admin: Awaited<ReturnType<typeof createAdmin>>
  const list = async () => outputOf(await admin.user('list'))
  let before: string
  beforeAll(async () => {
    admin = await createAdmin()
    await admin.add(ANN)
    await admin.createAccount()
    before = await list()
  })

  const emails = ['', 'ann', 'a@b@c', 'a\u200b@b', `${'a'.repeat(250)}@b.de`]
  it.each<[string, RegExp]>([
    ['add x@example.com', /Missing --account\.\n.*rushes admin account list --data \S+`\.\n$/],
    ['add x@example.com --account nobody', /Account nobody does not exist\.[\s\S]*rushes admin account list/],
    [
      'add ANN@example.com --account default',
      /User ann@example\.com already exists\.[\s\S]*rushes admin user link ann@example\.com/,
    ],
    [
      'add x@example.com --account default --public-url example.com',
      /--public-url must be an http or https URL/,
    ],
    [
      `link ${ANN} --public-url https://example.com/?a=1`,
      /a query or a fragment[\s\S]*https:\/\/example\.com\/runs/,
    ],
    ...emails.map((email): [string, RegExp] => [
      `add "${email}" --account default`,
      /is not a valid email\.[\s\S]*ann@example\.com/,
    ]),
    ['link nobody@example.com', /User nobody@example\.com does not exist\.[\s\S]*rushes admin user list/],
  ])('says what is wrong, and changes nothing: %s', async (line, message) => {
    expect(usageErrorOf(await admin.user(line))).toMatch(message)
    expect(await list()).toBe(before)
  })
})
