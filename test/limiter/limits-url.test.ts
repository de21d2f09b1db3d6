import { describe, expect, it } from 'vitest'
import { maskLimitsUrl, parseLimitsUrl } from '../../src/limiter/redis/limits-url.js'

const PLAIN = { port: 6379, username: undefined, password: undefined, database: 0, isTls: false }

describe('the URL of a shared rate limit', () => {
  it.each([
    ['redis://cache', { ...PLAIN, host: 'cache' }, 'redis://cache'],
    ['valkey://cache:7000/', { ...PLAIN, host: 'cache', port: 7_000 }, 'valkey://cache:7000/'],
    ['redis://[::1]:7000/3', { ...PLAIN, host: '::1', port: 7_000, database: 3 }, 'redis://[::1]:7000/3'],
    [
      'rediss://ci:p%40ss%2Fword@cache.example.com:6380/2',
      {
        host: 'cache.example.com',
        port: 6_380,
        username: 'ci',
        password: 'p@ss/word',
        database: 2,
        isTls: true,
      },
      'rediss://***@cache.example.com:6380/2',
    ],
    [
      'valkeys://:secret@cache',
      { ...PLAIN, host: 'cache', password: 'secret', isTls: true },
      'valkeys://***@cache',
    ],
    ['redis://:a@b@cache', { ...PLAIN, host: 'cache', password: 'a@b' }, 'redis://***@cache'],
  ])('%s', (text, address, masked) => {
    expect(parseLimitsUrl(text)).toEqual(address)
    expect(maskLimitsUrl(text)).toBe(masked)
  })

  it.each([
    'cache:6379',
    '127.0.0.1:6379',
    'http://cache',
    'redis:cache',
    'redis://',
    'redis://:secret@',
    'redis://secret@cache',
    'redis://:a/b@cache',
    'redis://:a%zz@cache',
    'redis://cache:99999',
    'redis://cache/name',
    'redis://cache?password=secret',
    'redis://cache#1',
  ])('%s is not one, and nothing of it is shown', (text) => {
    expect(parseLimitsUrl(text)).toBeUndefined()
    expect(maskLimitsUrl(text)).toBe('***')
  })
})
