/** The form of an API key: what is typed to what is sent. */
import { describe, expect, it } from 'vitest'
import { exportLines } from '../../src/console/keys/key-dialogs.js'
import {
  checkFields,
  expiryHint,
  fieldsOf,
  type KeyFields,
  NO_TERMS,
  termsOf,
} from '../../src/console/keys/key-terms.js'
import { stateOf } from '../../src/console/keys/keys-page.js'
import { CONSOLE_PATHS, type ConsoleKey } from '../../src/protocol/console.js'
import { type KeyState, MAX_ALLOWED_IPS, MAX_CREDITS } from '../../src/protocol/credentials.js'
import { createConsoleService, signInByLink } from '../support/console.js'

const NOW = Date.parse('2026-11-22T12:00:00Z')

const key = (more: Partial<ConsoleKey> = {}): ConsoleKey => ({
  ...{
    id: 1,
    name: 'ci',
    prefix: 'rk_a',
    disabled: false,
    spent: 0,
    spend_limit: null,
    used: 0,
    quota: null,
  },
  ...{
    allowed_ips: null,
    expires_at: null,
    rate: null,
    created_at: '2026-01-01T00:00:00Z',
    last_used_at: null,
  },
  ...more,
})

const fields = (more: Partial<KeyFields>): KeyFields => ({ ...NO_TERMS, name: 'ci', ...more })

describe('the fields of a key', () => {
  it.each<[Partial<KeyFields>, readonly string[]]>([
    [{}, []],
    [{ name: '  ' }, ['name']],
    [{ spendLimit: '0', quota: '0' }, []],
    [{ spendLimit: ' 10 ', quota: ' 7 ' }, []],
    [{ spendLimit: '10.5', quota: '1.0' }, ['spendLimit', 'quota']],
    [{ spendLimit: String(MAX_CREDITS), quota: String(MAX_CREDITS) }, []],
    [{ spendLimit: String(MAX_CREDITS + 1), quota: '999999999999999' }, ['spendLimit', 'quota']],
    [{ spendLimit: '-1' }, ['spendLimit']],
    [{ spendLimit: '1e3', quota: '1.5' }, ['spendLimit', 'quota']],
    [{ quota: 'many' }, ['quota']],
    [{ expires: '2026-12-01' }, []],
    [{ expires: '2026-11-20' }, ['expires']],
    [{ expires: 'soon' }, ['expires']],
    [{ expires: '9999-12-30' }, []],
    // Browsers let a year have six digits.
    [{ expires: '10000-01-02' }, ['expires']],
  ])('%j', (more, wrong) => expect(Object.keys(checkFields(fields(more), NO_TERMS, NOW))).toEqual(wrong))

  it('accept an expiry in the past if it was not changed', () => {
    const before = fieldsOf(key({ expires_at: '2026-01-01T10:00:00Z' }))
    expect(checkFields({ ...before, name: 'other' }, before, NOW)).toEqual({})
  })

  it('reach the service only where they were changed', () => {
    const before = fieldsOf(key({ spend_limit: 5, quota: 7, allowed_ips: ['10.0.0.0/8'] }))
    expect(termsOf(before, before)).toEqual({})
    expect(termsOf({ ...before, name: ' nightly ', spendLimit: '', quota: '9' }, before)).toEqual({
      name: 'nightly',
      spend_limit: null,
      quota: 9,
    })
    expect(termsOf({ ...before, addresses: '' }, before)).toEqual({ allowed_ips: null })
    expect(termsOf({ ...before, addresses: ' 10.0.0.0/8\n\n192.0.2.7, ::1 ' }, before)).toEqual({
      allowed_ips: ['10.0.0.0/8', '192.0.2.7', '::1'],
    })
  })

  it('pass the check of the form exactly if the service accepts them', async () => {
    const browser = await signInByLink(await createConsoleService())
    const accepted: readonly Partial<KeyFields>[] = [
      { spendLimit: '0', quota: String(MAX_CREDITS) },
      { spendLimit: ' 007 ', addresses: '192.0.2.7 '.repeat(MAX_ALLOWED_IPS) },
      { expires: '9999-12-30' },
    ]
    const refused: readonly Partial<KeyFields>[] = [
      { spendLimit: '10.5' },
      { quota: '999999999999999' },
      { addresses: '192.0.2.7 '.repeat(MAX_ALLOWED_IPS + 1) },
    ]
    for (const more of [...accepted, ...refused]) {
      const { status } = await browser.post(CONSOLE_PATHS.keys, termsOf(fields(more), NO_TERMS))
      const errors = Object.keys(checkFields(fields(more), NO_TERMS, NOW))
      expect([status, errors.length], JSON.stringify(more)).toEqual(
        accepted.includes(more) ? [201, 0] : [400, 1],
      )
    }
  })

  it('show when the key expires, also within a day', () => {
    const hint = (expires: string, expiresAt: string | null) =>
      expiryHint(expires, key({ expires_at: expiresAt }), 'UTC')
    const endOfDay = new Date(Date.parse('2026-12-24T23:59:59')).toISOString()
    const whole = 'Works until the end of this day'
    expect(expiryHint('', undefined)).toBe(whole)
    expect(hint('2026-12-24', endOfDay)).toBe(whole)
    expect(hint('2026-12-24', '2026-12-24T12:00:00Z')).toBe('Works until Dec 24, 2026, 12:00:00 UTC')
    expect(hint('2026-12-25', '2026-12-24T12:00:00Z')).toBe(whole)
    expect(hint('', '2026-12-24T12:00:00Z')).toBe(whole)
  })

  it('keep the expiry of the key that they were filled from', () => {
    const expires = new Date(Date.parse('2026-12-24T23:59:59')).toISOString()
    const before = fieldsOf(key({ expires_at: expires }))
    expect(before.expires).toBe('2026-12-24')
    expect(termsOf({ ...NO_TERMS, name: 'a', expires: '2026-12-24' }, NO_TERMS)).toEqual({
      name: 'a',
      expires_at: expires,
    })
    expect(fieldsOf(key({ expires_at: 'x' })).expires).toBe('')
  })
})

it.each<[Partial<ConsoleKey>, KeyState]>([
  [{}, 'active'],
  [{ expires_at: '2026-11-22T12:00:01Z', spend_limit: 5, spent: 4, quota: 2, used: 1 }, 'active'],
  [{ disabled: true, expires_at: '2020-01-01T00:00:00Z' }, 'disabled'],
  [{ expires_at: '2026-11-22T12:00:00Z' }, 'expired'],
  [{ spend_limit: 5, spent: 5, quota: 1, used: 1 }, 'spend limit reached'],
  [{ spend_limit: 0 }, 'spend limit reached'],
  [{ quota: 1, used: 1 }, 'quota used up'],
])('shows the state of a key with %j', (more, state) => expect(stateOf(key(more), NOW)).toBe(state))

it('quotes the export lines for a shell', () =>
  expect(exportLines({ A: 'http://127.0.0.1:7878', B: `it's $(x)` })).toBe(
    `export A=http://127.0.0.1:7878\nexport B='it'\\''s $(x)'`,
  ))
