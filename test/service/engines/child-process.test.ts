import { describe, expect, test } from 'vitest'
import { commandEnvironment, rendererEnvironment } from '../../../src/service/engines/process.js'

/** What a model needs. */
const KEPT = {
  PATH: '/usr/bin',
  HOME: '/models',
  USER: 'rushes',
  LANG: 'C.UTF-8',
  CUDA_VISIBLE_DEVICES: '1',
  LD_LIBRARY_PATH: '/opt/cuda/lib64',
  HTTPS_PROXY: 'http://proxy.example.com:3128',
  TMPDIR: '/scratch',
}
const KEYS_OF_THE_MODEL = {
  HF_TOKEN: 'hf_abcdefgh',
  IMAGES_API_KEY: 'sk-own-key',
  REDIS_URL: 'redis://127.0.0.1:6379/2',
}

const PASSWORD = 'pass/word+1'
const DATABASE = `postgres://rushes:${encodeURIComponent(PASSWORD)}@db.example.com:5432/rushes`
const SERVICE = {
  RUSHES_API_KEY: 'rk_0123456789',
  RUSHES_STATE_DIR: '/state',
  PGHOST: 'db.example.com',
  PGPASSWORD: 'pg-password',
  AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'aws-secret',
  AWS_SESSION_TOKEN: 'aws-session',
  AWS_PROFILE: 'rushes',
  AWS_SHARED_CREDENTIALS_FILE: '/etc/rushes/aws',
  AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://169.254.170.23/v1/credentials',
  CREDENTIALS_DIRECTORY: '/run/credentials/rushes.service',
}

describe('the environment of a command', () => {
  test('has the variables of the service, without its own settings and secrets', () => {
    const env = { ...KEPT, ...KEYS_OF_THE_MODEL, ...SERVICE, RUSHES_DATABASE_URL: DATABASE }
    expect(commandEnvironment(env)).toEqual({ ...KEPT, ...KEYS_OF_THE_MODEL })
  })

  test.each([
    ['the URL of the database', DATABASE],
    ['the URL of the database with options', `${DATABASE}?sslmode=require`],
    ['the database for another library', DATABASE.replace('postgres:', 'postgresql+psycopg2:')],
    ['the password of the database', PASSWORD],
    ['the password of the database as it is in the URL', encodeURIComponent(PASSWORD)],
    ['the API key', SERVICE.RUSHES_API_KEY],
    ['PGPASSWORD', SERVICE.PGPASSWORD],
    ['the password of the database in words', `host=db user=rushes password=${PASSWORD} dbname=other`],
    ['the password of the database, quoted', `{"user":"rushes","password":"${PASSWORD}"}`],
    ['the password of the database with its user', `rushes:${PASSWORD}`],
    ['the password of the database for another one', DATABASE.replace('rushes:', 'models:')],
    ['the AWS secret key', SERVICE.AWS_SECRET_ACCESS_KEY],
  ])('has no other variable with %s', (_name, value) => {
    const env = { ...KEPT, ...KEYS_OF_THE_MODEL, ...SERVICE, OTHER_NAME: value }
    expect(commandEnvironment(env, [DATABASE])).toEqual({ ...KEPT, ...KEYS_OF_THE_MODEL })
  })

  test.each([
    ['postgres://rushes@db/rushes?password=in-query&sslmode=require', 'in-query'],
    ['postgres://db/rushes?user=rushes&password=in%2Fquery', 'in/query'],
    ['postgres://db/rushes?sslpassword=in-query', 'in-query'],
  ])('with %s as the URL, %s is a secret', (url, password) => {
    const env = { ...KEPT, ONE: password, OTHER: `postgres://models@db2/models?password=${password}` }
    expect(commandEnvironment(env, [url])).toEqual(KEPT)
  })

  test.each([
    [{ PGPASSWORD: 'root' }, { USER: 'root', LOGNAME: 'root' }],
    [{ AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' }, { NODE_ENV: 'test' }],
    [{ PGPASSWORD: '1' }, { HF_HUB_OFFLINE: '1' }],
    [{ PGPASSWORD: '#secret-long-1' }, { EMPTY: '' }],
    [
      { PGPASSWORD: 'postgres' },
      { PATH: '/usr/lib/postgresql/bin:/opt/postgres:/bin', HOME: '/var/lib/postgres' },
    ],
  ])('with %j of the service, %j is kept', (secrets, env) => {
    expect(commandEnvironment({ ...secrets, ...env })).toEqual(env)
  })

  test.each([
    ['postgres://rushes:1@db/rushes', { CUDA_VISIBLE_DEVICES: '1' }],
    ['postgres://rushes:rushes@db/rushes', { USER: 'rushes' }],
    ['postgres://db/rushes', { MODELS: 'postgres://db/models' }],
    ['redis://localhost', { REDIS_URL: 'redis://localhost:6379/2' }],
    [undefined, { EMPTY: '' }],
    ['', { EMPTY: '' }],
  ])('with %s as the URL, %j is kept', (url, env) => {
    expect(commandEnvironment(env, [url])).toEqual(env)
  })
})

test('the environment of the built-in renderer has no secrets at all', () => {
  const env = {
    ...KEPT,
    ...SERVICE,
    HF_TOKEN: 'x',
    IMAGES_API_KEY: 'x',
    POSTGRES_PASSWORD: 'x',
    DATABASE_URL: 'postgres://db/rushes',
    DSN: DATABASE,
  }
  expect(rendererEnvironment(env)).toEqual(KEPT)
})
