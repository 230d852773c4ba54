// `@inference-proxy/test/redis`: a real Redis without root, containers or a service.
export { NoRedis, obtainRedis, type RedisBinary } from './redis-binary.ts';
export { type RedisOptions, type RunningRedis, redisUrlAt, redisUrlOf, startRedis } from './redis-server.ts';
export { type RedisPasswords, type RedisUser, redisPasswords } from './redis-users.ts';
export { type TestRedis, testRedis } from './test-redis.ts';
