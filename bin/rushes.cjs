#!/usr/bin/env node
// Node 22.8 and later can keep compiled code between starts.
require('node:module').enableCompileCache?.()
require('../dist/rushes.cjs').start()
