/** When a command stops sending creates because the service is down. */
import { describe, expect, it } from 'vitest'
import { EXIT, RushesError } from '../../src/errors.js'
import { isServiceDown } from '../../src/runs/schedule.js'

const failed = (exitCode: number) => new RushesError('x', 'no', { exitCode })

describe('a service is down', () => {
  it.each<[string, readonly (RushesError | undefined)[], boolean]>([
    ['not before the first create', [], false],
    ['after a first create without a connection', [failed(EXIT.network)], true],
    ['after a first create with an invalid response', [failed(EXIT.serviceBroken)], true],
    ['not where a create was accepted before', [undefined, failed(EXIT.network)], false],
    ['not where one of several was refused', [failed(EXIT.network), failed(EXIT.refused)], false],
    ['also where a mistake in a row was found before', [failed(EXIT.usage), failed(EXIT.network)], true],
    ['not for mistakes alone', [failed(EXIT.usage), failed(EXIT.usage)], false],
  ])('%s', (_, outcomes, isDown) => {
    expect(isServiceDown(outcomes)).toBe(isDown)
  })
})
