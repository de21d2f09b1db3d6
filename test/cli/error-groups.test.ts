import { expect, it } from 'vitest'
import { ErrorGroups } from '../../src/cli/runs/error-groups.js'
import { EXIT, RushesError } from '../../src/errors.js'

const unconfirmed = (key: string, message = 'no response came') =>
  new RushesError('submission_unknown', message, {
    exitCode: EXIT.outcomeUnknown,
    hint: `See it with \`rushes show '${key}'\`.`,
  })

it('errors that differ only in the key of the create are printed once, with all keys', () => {
  const groups = new ErrorGroups()
  expect(groups.add(unconfirmed('~3f2a'), '~3f2a')).toBe(true)
  expect(groups.add(unconfirmed('~99ab1'), '~99ab1')).toBe(false)
  expect(groups.add(unconfirmed('~1234', 'the connection was reset'), '~1234')).toBe(true)
  expect(groups.repeated('create')).toMatchObject([
    { message: '1 more create: no response came', hint: 'Also ~99ab1.' },
  ])
})

it('errors that are printed once name at most ten keys, and the command that lists the others', () => {
  const groups = new ErrorGroups()
  for (let number = 0; number <= 10; number++) groups.add(unconfirmed(`~aaa${number}`), `~aaa${number}`)
  expect(groups.repeated('create', 'rushes list')[0]?.hint).toMatch(/^Also (~aaa\d+(, )?){10}\.$/)
  groups.add(unconfirmed('~bbbb'), '~bbbb')
  expect(groups.repeated('create', 'rushes list')[0]?.hint).toMatch(
    /^Also (~aaa\d+(, )?){10} and 1 more\. List them with `rushes list`\.$/,
  )
})
