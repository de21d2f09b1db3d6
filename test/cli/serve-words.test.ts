/** What `rushes serve` says of its console, and the URLs that it accepts. */
import { describe, expect, it } from 'vitest'
import { consoleLines } from '../../src/cli/serve/announce.js'
import { publicUrlOf } from '../../src/cli/serve/values.js'
import { RushesError } from '../../src/errors.js'

describe('the hint for a sign-in link', () => {
  it.each<[url: string, publicUrl: string | undefined, where: string, flags: string]>([
    ['http://127.0.0.1:7878', undefined, '', ''],
    ['http://127.0.0.1:7878', undefined, ' --data d', ' --data d'],
    ['http://127.0.0.1:8000', undefined, '', ' --public-url http://127.0.0.1:8000'],
    ['http://[::1]:7878', undefined, '', " --public-url 'http://[::1]:7878'"],
    [
      'http://127.0.0.1:7878',
      'https://x.example/runs',
      ' --database <url>',
      ' --database <url> --public-url https://x.example/runs',
    ],
    ['http://127.0.0.1:8000', 'http://127.0.0.1:7878', '', ''],
  ])('of %s as %s%s', (url, publicUrl, where, flags) => {
    const linesOf = (hasUsers: boolean) =>
      consoleLines({ url, publicUrl, console: { linkToken: undefined, hasUsers } }, where)
    expect(linesOf(true)).toEqual([
      `Console: ${publicUrl ?? url}/`,
      `To get a sign-in link: \`rushes admin user link <email>${flags}\`.`,
    ])
    expect(linesOf(false).at(-1)).toBe(
      `It has no users yet. To add one: \`rushes admin user add <email> --account default${flags}\`.`,
    )
  })

  it('is not there on the first start, which prints the link itself', () => {
    const start = { url: 'http://127.0.0.1:8000', publicUrl: undefined }
    expect(consoleLines({ ...start, console: { linkToken: 't', hasUsers: true } }, '')).toEqual([
      'Console: http://127.0.0.1:8000/#/link/t',
      'This link signs you in once, within 15 minutes.',
    ])
    expect(consoleLines({ ...start, console: undefined }, '')).toEqual([])
  })
})

describe('--public-url', () => {
  it.each<[text: string, url: string]>([
    ['https://runs.example.com', 'https://runs.example.com'],
    ['HTTP://x.example:81/runs//', 'HTTP://x.example:81/runs'],
    ['http://[::1]:80/', 'http://[::1]:80'],
  ])('%s', (text, url) => expect(publicUrlOf(text)).toBe(url))

  it.each<[text: string, says: RegExp]>([
    ['', /"" is not an http or https URL/],
    ['runs.example.com', /is not an http or https URL/],
    ['ftp://x.example', /is not an http or https URL/],
    ['javascript:alert(1)', /is not an http or https URL/],
    ['https:x.example', /is not an http or https URL/],
    ['https://', /is not an http or https URL/],
    ['https://x.example:99999', /is not an http or https URL/],
    ['https://x.example/a b', /is not an http or https URL/],
    ['https://x.exa\nmple', /is not an http or https URL/],
    ['https://x.example/?', /must not contain a query or a fragment/],
    ['https://x.example?a=1', /must not contain a query or a fragment/],
    ['https://x.example/#', /must not contain a query or a fragment/],
    ['https://x.example#/runs', /must not contain a query or a fragment/],
    ['https://ann:secret@x.example', /must not contain a user name or a password/],
    ['https://ann@x.example/?a', /must not contain a user name or a password/],
    ['https://:secret@x.example', /must not contain a user name or a password/],
  ])('%j is refused', (text, says) => {
    const refused = () => publicUrlOf(text)
    expect(refused).toThrow(says)
    expect(refused).not.toThrow(/secret/)
    expect(refused).toThrow(
      expect.objectContaining({ code: 'usage', hint: expect.stringContaining('https://runs.example.com') }),
    )
    expect(refused).toThrow(RushesError)
  })
})
