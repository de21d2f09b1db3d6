#!/usr/bin/env node
require('../dist/rushes.cjs').start()
